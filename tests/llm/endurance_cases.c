/* SPDX-License-Identifier: MIT
 * The same text has the same bits each time, and a long one needs no more memory than a short one. */
#include "tests/llm/endurance_cases.h"

#include <check.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tfm/llm.h>

#include "tests/devices.h"
#include "tests/llm/tiny_llama.h"

enum {
    RUNS = 20,
    PROMPT = 90, /* rows for a matrix product, and a ragged end */
    SINGLES = 12,
    LONG = 5000,
    WARM = 600,    /* tokens after which every kernel has run, also those for long contexts */
    GROWTH = 2048, /* KiB */
};

static char path[128];

static int32_t token(int i)
{
    return (i * 37 + i * i % 101) % 250;
}

static struct tfm_model *open_model(void)
{
    struct tfm_model *model = NULL;
    struct tfm_error err = {0};
    ck_assert_msg(tfm_model_open(path, &model, &err) == TFM_STATUS_OK, "%s", err.text);
    return model;
}

static struct tfm_session *open_session(struct tfm_model *model, struct test_devices *devices,
                                        int64_t context)
{
    struct tfm_session *session = NULL;
    struct tfm_session_options options;
    struct tfm_error err = {0};
    tfm_session_defaults(&options);
    options.context = context;
    ck_assert_msg(tfm_session_create(model, devices->device, devices->n, &options, &session,
                                     &err) == TFM_STATUS_OK,
                  "%s", err.text);
    return session;
}

static void feed(struct tfm_session *session, const int32_t *ids, size_t n)
{
    struct tfm_error err = {0};
    ck_assert_msg(tfm_session_feed(session, ids, n, &err) == TFM_STATUS_OK, "%s", err.text);
}

/* ---- the same bits ---- */

/* FNV-1a of the logits after the prompt and after each token. */
static uint64_t hash_of_run(struct tfm_session *session)
{
    uint64_t hash = 14695981039346656037u;
    int32_t ids[PROMPT + SINGLES];

    for (int i = 0; i < PROMPT + SINGLES; i++)
        ids[i] = token(i);
    for (int at = 0; at < PROMPT + SINGLES; at += at ? 1 : PROMPT) {
        feed(session, ids + at, at ? 1 : PROMPT);
        const unsigned char *bytes = (const unsigned char *)tfm_session_logits(session);
        for (size_t i = 0; i < TINY_VOCAB * sizeof(float); i++)
            hash = (hash ^ bytes[i]) * 1099511628211u;
    }
    return hash;
}

/* Fault: a sum whose order depends on which part was first, memory that is read before it is written, a
 * session or a device that is not like the one before. */
START_TEST(twenty_runs_are_one)
{
    struct test_devices devices;
    struct tfm_model *model = open_model();
    struct tfm_session *session = NULL;
    struct tfm_error err = {0};
    uint64_t first = 0;

    for (int run = 0; run < RUNS; run++) {
        if (run % 10 == 0)
            test_devices_open(&devices);
        if (run % 2 == 0)
            session = open_session(model, &devices, 128);
        else /* the same session, which has seen something else in these cells */
            ck_assert_msg(tfm_session_truncate(session, 0, &err) == TFM_STATUS_OK, "%s", err.text);
        const uint64_t hash = hash_of_run(session);
        first = run ? first : hash;
        ck_assert_msg(hash == first, "run %d has the hash %016llx, the first %016llx", run,
                      (unsigned long long)hash, (unsigned long long)first);
        if (run % 2 == 1)
            tfm_session_destroy(session);
        if (run % 10 == 9)
            test_devices_close(&devices);
    }
    tfm_model_close(model);
}
END_TEST

/* ---- the same memory ---- */

static long resident_kib(void)
{
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "r");
    ck_assert_ptr_nonnull(file);
    while (kib < 0 && fgets(line, sizeof line, file))
        (void)sscanf(line, "VmRSS: %ld", &kib);
    fclose(file);
    ck_assert_int_gt(kib, 0);
    return kib;
}

/* Fault: an event, a buffer or a line of log that each token leaves behind. */
START_TEST(a_long_session_does_not_grow)
{
    struct test_devices devices;
    struct tfm_model *model = open_model();
    long before = 0;

    test_devices_open(&devices);
    struct tfm_session *session = open_session(model, &devices, LONG);
    for (int i = 0; i < LONG; i++) {
        const int32_t id = token(i);
        feed(session, &id, 1);
        if (i == WARM)
            before = resident_kib();
    }
    const long grown = resident_kib() - before;
    ck_assert_msg(grown < GROWTH, "%ld KiB more after %d tokens", grown, LONG - WARM);
    tfm_session_destroy(session);
    tfm_model_close(model);
    test_devices_close(&devices);
}
END_TEST

int endurance_cases_run(const char *backend)
{
    test_backend = backend;
    if (!tests_ask(test_devices_present))
        return tests_skip("the backend cannot be used here");
    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof path, "%.80s/tfm-endurance-XXXXXX", tmp ? tmp : "/tmp");
    const int file = mkstemp(path);
    if (file < 0)
        return 99;
    close(file);
    struct tiny_llama tiny = tiny_llama_default();
    tiny.layers = 1;
    tiny.heads = 2;
    tiny.kv_heads = 1;
    tiny.head_dim = 32;
    tiny.context = LONG;
    tiny.type = TINY_Q4_1;
    tiny.embedding_type = TINY_Q8_0;
    tiny_llama_write(&tiny, path);

    Suite *suite = suite_create("endurance");
    TCase *tcase = tcase_create("endurance");
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, twenty_runs_are_one);
    tcase_add_test(tcase, a_long_session_does_not_grow);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    unlink(path);
    return failed != 0;
}
