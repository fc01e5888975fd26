/* SPDX-License-Identifier: MIT
 * A warm session allocates nothing: between decode step 2 and 64 the library's allocator and the clCreate*
 * calls of the whole process (counted by intercept.c, which this program preloads into itself) stand
 * still. A buffer, kernel or event made per step is slow and leaks sooner or later. */
#include <check.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tfm/llm.h>

#include "tests/devices.h"
#include "tests/llm/tiny_llama.h"
#include "tests/opencl/preload.h"

enum { PROMPT = 5, STEPS = 64 };

static unsigned long (*cl_creates)(void);
static char tiny_path[128];

static void feed(struct tfm_session *session, const int32_t *ids, size_t n)
{
    struct tfm_error err = {0};
    ck_assert_msg(tfm_session_feed(session, ids, n, &err) == TFM_STATUS_OK, "%s", err.text);
}

static void decode(const char *path, enum tfm_dtype cache)
{
    struct test_devices devices;
    struct tfm_model *model = NULL;
    struct tfm_session *session = NULL;
    struct tfm_session_options options;
    struct tfm_error err = {0};
    unsigned long before = cl_creates(), created = 0;
    uint64_t allocated = 0;

    test_devices_open(&devices);
    ck_assert_msg(tfm_model_open(path, &model, &err) == TFM_STATUS_OK, "%s", err.text);
    tfm_session_defaults(&options);
    options.cache = cache;
    options.context = PROMPT + STEPS;
    ck_assert_msg(tfm_session_create(model, devices.device, devices.n, &options, &session, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
    /* context, queue, programs, kernels, buffers: were these not seen, nothing would be */
    ck_assert_uint_gt(cl_creates(), before + 5);
    ck_assert_uint_gt(tfm_allocations(), 0);

    const int32_t prompt[PROMPT] = {72, 101, 108, 108, 111};
    feed(session, prompt, PROMPT);
    for (int step = 1; step <= STEPS; step++) {
        const int32_t id = (step * 37 + step * step) % 250;
        feed(session, &id, 1);
        if (step == 2) {
            created = cl_creates();
            allocated = tfm_allocations();
        }
    }
    ck_assert_msg(cl_creates() == created, "%lu clCreate* calls in 62 steps",
                  cl_creates() - created);
    ck_assert_msg(tfm_allocations() == allocated, "%llu allocations in 62 steps",
                  (unsigned long long)(tfm_allocations() - allocated));
    tfm_session_destroy(session);
    tfm_model_close(model);
    test_devices_close(&devices);
}

static const enum tfm_dtype caches[] = {TFM_DTYPE_F16, TFM_DTYPE_F32};

START_TEST(tiny_decodes_without_allocations)
{
    decode(tiny_path, caches[_i]);
}
END_TEST

START_TEST(model_decodes_without_allocations)
{
    decode(test_model_path(), TFM_DTYPE_F16);
}
END_TEST

/* clCreate* calls from opening a device to the logits of a prompt, in chunks of `chunk` tokens. */
static unsigned long creates_of(int64_t chunk, float *logits, size_t n)
{
    static const int32_t prompt[PROMPT] = {72, 101, 108, 108, 111};
    struct test_devices devices;
    struct tfm_model *model = NULL;
    struct tfm_session *session = NULL;
    struct tfm_session_options options;
    struct tfm_error err = {0};
    const unsigned long before = cl_creates();

    test_devices_open(&devices);
    ck_assert_msg(tfm_model_open(tiny_path, &model, &err) == TFM_STATUS_OK, "%s", err.text);
    tfm_session_defaults(&options);
    options.context = 32;
    options.chunk = chunk;
    ck_assert_msg(tfm_session_create(model, devices.device, devices.n, &options, &session, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
    feed(session, prompt, PROMPT);
    const unsigned long made = cl_creates() - before;
    memcpy(logits, tfm_session_logits(session), n * sizeof *logits);
    tfm_session_destroy(session);
    tfm_model_close(model);
    test_devices_close(&devices);
    return made;
}

/* Fault: a short prompt waits for programs and kernels that none of its runs comes to. */
START_TEST(a_plan_for_few_rows_makes_what_it_needs)
{
    enum { VALUES = 64 };
    float few[VALUES], many[VALUES];
    const unsigned long of_few = creates_of(8, few, VALUES), of_many = creates_of(9, many, VALUES);

    ck_assert_msg(of_few + 20 < of_many, "%lu clCreate* calls for 8 rows, %lu for 9", of_few,
                  of_many);
    ck_assert_mem_eq(few, many, sizeof few);
}
END_TEST

int main(int argc, char **argv)
{
    (void)argc;
    if (!tests_ask(test_devices_present))
        return tests_skip("the backend cannot be used here");
    *(void **)&cl_creates = dlsym(RTLD_DEFAULT, "test_cl_creates");
    if (!cl_creates)
        return tests_preload("intercept", argv);
    const char *tmp = getenv("TMPDIR");
    snprintf(tiny_path, sizeof tiny_path, "%.80s/tfm-tiny-XXXXXX", tmp ? tmp : "/tmp");
    int file = mkstemp(tiny_path);
    if (file < 0)
        return 99;
    close(file);
    struct tiny_llama tiny = tiny_llama_default();
    tiny.context = 128;
    tiny.type = TINY_Q4_1;
    tiny.embedding_type = TINY_Q8_0;
    tiny_llama_write(&tiny, tiny_path);
    Suite *suite = suite_create("no allocations");
    TCase *tcase = tcase_create("decode");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, tiny_decodes_without_allocations, 0, 2);
    tcase_add_test(tcase, a_plan_for_few_rows_makes_what_it_needs);
    if (test_model_path())
        tcase_add_test(tcase, model_decodes_without_allocations);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    unlink(tiny_path);
    return failed != 0;
}
