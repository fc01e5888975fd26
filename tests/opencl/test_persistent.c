/* SPDX-License-Identifier: MIT
 * Runs of few rows in one launch: whatever happens to its parts, the logits have the bits of launches one by
 * one. A part that stalls at each barrier in turn; one processor; other sessions, processes and a busy
 * neighbour at the same time. Would catch parts that leave at different steps, steps that ran twice or
 * never, sums that depend on the number of parts, a wait without an end. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_setaffinity */
#endif
#include <check.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tfm/llm.h>

#include "tests/llm/tiny_llama.h"
#include "tests/opencl/parts.h"

enum { TOKENS = 70 };       /* past one attention split */
enum { STALL_BOUNDS = 20 }; /* bounds of a wait that a part stalls */

static char path[128];

static struct tiny_llama tiny_of_phases(void)
{
    struct tiny_llama tiny = tiny_llama_default();

    tiny.heads = 6;
    tiny.kv_heads = 2;
    tiny.head_dim = 16;
    tiny.context = 128;
    tiny.type = TINY_Q4_1;
    tiny.embedding_type = TINY_Q8_0;
    return tiny;
}

/* ---- a session ---- */

struct scene {
    struct test_devices devices;
    struct tfm_model *model;
    struct tfm_session *session;
};

static void open_session(struct scene *s)
{
    struct tfm_session_options options;
    struct tfm_error err = {0};

    tfm_session_defaults(&options);
    options.context = TOKENS + 8;
    ck_assert_msg(tfm_session_create(s->model, s->devices.device, s->devices.n, &options,
                                     &s->session, &err) == TFM_STATUS_OK,
                  "%s", err.text);
}

static void open_scene(struct scene *s, const char *persistent)
{
    struct tfm_error err = {0};

    ck_assert_int_eq(setenv("TFM_OPENCL_PERSISTENT", persistent, 1), 0);
    parts_open(&s->devices);
    ck_assert_msg(tfm_model_open(path, &s->model, &err) == TFM_STATUS_OK, "%s", err.text);
    open_session(s);
}

static void close_scene(struct scene *s)
{
    tfm_session_destroy(s->session);
    tfm_model_close(s->model);
    test_devices_close(&s->devices);
}

static void feed(struct tfm_session *session, const int32_t *ids, size_t n)
{
    struct tfm_error err = {0};
    ck_assert_msg(tfm_session_feed(session, ids, n, &err) == TFM_STATUS_OK, "%s", err.text);
}

/* FNV-1a over the bits of the logits. */
static uint64_t bits(const struct tfm_session *session, uint64_t hash)
{
    const unsigned char *c = (const unsigned char *)tfm_session_logits(session);
    for (size_t i = 0; i < TINY_VOCAB * sizeof(float); i++)
        hash = (hash ^ c[i]) * 1099511628211u;
    return hash;
}

static int32_t token(size_t i)
{
    return (int32_t)((i * 37 + i * i) % 250);
}

/* Reads TOKENS tokens, `chunk` at a time; the bits of the logits that all chunk sizes share. */
static uint64_t decode(struct tfm_session *session, size_t chunk)
{
    int32_t ids[TOKENS];
    uint64_t hash = 14695981039346656037u;

    ck_assert_int_eq(tfm_session_truncate(session, 0, NULL), TFM_STATUS_OK);
    for (size_t i = 0; i < TOKENS; i++)
        ids[i] = token(i);
    for (size_t at = 0; at < TOKENS; at += chunk) {
        feed(session, ids + at, TOKENS - at < chunk ? TOKENS - at : chunk);
        if (chunk == 1)
            hash = bits(session, hash);
    }
    return chunk == 1 ? hash : bits(session, hash);
}

static uint64_t decode_with(const char *persistent, size_t chunk)
{
    struct scene s;
    open_scene(&s, persistent);
    const uint64_t hash = decode(s.session, chunk);
    close_scene(&s);
    return hash;
}

/* step 0: nobody stalls. */
static void set_stall(const struct scene *s, int step, int part, int eager)
{
    const int bound = (int)parts_handle(&s->devices)->few_polls;
    atomic_store(&tfm__cl_stall.step, step);
    atomic_store(&tfm__cl_stall.part, part);
    atomic_store(&tfm__cl_stall.polls, STALL_BOUNDS * bound);
    atomic_store(&tfm__cl_stall.eager, eager);
}

static size_t processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
}

/* ---- tests ---- */

/* Of loop tests: activations as they are, or of 8 bits. */
static const char *const acts[] = {"f32", "int8"};

START_TEST(one_launch_and_many_have_the_same_bits)
{
    ck_assert_int_eq(setenv("TFM_ACT", acts[_i], 1), 0);
    const uint64_t many = decode_with("off", 1);
    ck_assert_uint_eq(atomic_load(&tfm__cl_persistent_runs), 0);
    const uint64_t one = decode_with("on", 1);
    ck_assert_uint_gt(atomic_load(&tfm__cl_persistent_runs), 0);
    ck_assert_uint_eq(one, many);
    ck_assert_uint_eq(decode_with("auto", 1), many);
}
END_TEST

/* A row gets the same bits whoever shares its run. */
START_TEST(rows_together_have_the_bits_of_rows_alone)
{
    struct scene s;

    ck_assert_int_eq(setenv("TFM_ACT", acts[_i], 1), 0);
    open_scene(&s, "on");
    decode(s.session, 1);
    const uint64_t alone = bits(s.session, 14695981039346656037u);
    for (size_t chunk = 2; chunk <= TFM__CL_FEW_ROWS; chunk++)
        ck_assert_msg(decode(s.session, chunk) == alone, "chunks of %zu rows differ", chunk);
    close_scene(&s);
}
END_TEST

/* Fault: linears of one x and several types, where the first needs less of x than the second: q of Q8_0 has
 * no use for the sums that k and v of Q4_1 add to their products. */
START_TEST(types_side_by_side)
{
    struct tiny_llama tiny = tiny_of_phases();
    float few[TINY_VOCAB];
    struct scene s;

    tiny.foreign_tensor = "blk.1.attn_q.weight";
    tiny.foreign_type = TINY_Q8_0;
    tiny.foreign_bytes = tiny.heads * tiny.head_dim * tiny.width / 32 * 34;
    tiny_llama_write(&tiny, path);
    ck_assert_int_eq(setenv("TFM_ACT", acts[_i], 1), 0);
    open_scene(&s, "on");
    decode(s.session, 1);
    memcpy(few, tfm_session_logits(s.session), sizeof few);
    decode(s.session, TOKENS); /* too many for phases */
    for (size_t i = 0; i < TINY_VOCAB; i++)
        ck_assert_float_eq_tol(few[i], tfm_session_logits(s.session)[i], 1e-3f);
    close_scene(&s);
    tiny = tiny_of_phases();
    tiny_llama_write(&tiny, path);
}
END_TEST

START_TEST(a_part_stalls_at_each_barrier)
{
    struct scene s;
    struct tfm_error err = {0};
    int32_t last = token(TOKENS - 1);
    int bailed = 0;

    open_scene(&s, "on");
    decode(s.session, 1);
    const uint64_t right = bits(s.session, 1);
    for (int step = 1; step < 64; step++) {
        for (int part = 0; part < 2; part++) {
            const uint64_t bails = atomic_load(&tfm__cl_persistent_bails);
            set_stall(&s, step, part, 1);
            ck_assert_msg(tfm_session_truncate(s.session, TOKENS - 1, &err) == TFM_STATUS_OK, "%s",
                          err.text);
            feed(s.session, &last, 1);
            ck_assert_msg(bits(s.session, 1) == right, "part %d stalled behind step %d: other bits",
                          part, step);
            bailed += atomic_load(&tfm__cl_persistent_bails) > bails;
        }
    }
    /* two layers of five phases, and what is around them: most of the 12 barriers, by either part; the
     * scheduler may keep the other part away for as long */
    ck_assert_int_ge(bailed, 12);
    set_stall(&s, 0, 0, 0);
    ck_assert_int_eq(tfm_session_truncate(s.session, TOKENS - 1, &err), TFM_STATUS_OK);
    feed(s.session, &last, 1);
    ck_assert_uint_eq(bits(s.session, 1), right);
    close_scene(&s);
}
END_TEST

/* What is left is tried again, four times in all; then phases are launched for a while, longer each time. */
START_TEST(a_bail_out_makes_runs_wait)
{
    struct scene s;
    const int32_t id = 5;

    open_scene(&s, "on");
    feed(s.session, &id, 1);
    set_stall(&s, -1, 0, 0); /* whatever is tried */
    const uint64_t before = atomic_load(&tfm__cl_persistent_runs);
    const uint64_t bails = atomic_load(&tfm__cl_persistent_bails);
    for (int i = 0; i < 60; i++)
        feed(s.session, &id, 1);
    const uint64_t tried = atomic_load(&tfm__cl_persistent_runs) - before;
    ck_assert_uint_ge(tried, 4); /* 1 + 1, 1 + 2, 1 + 4, ... */
    ck_assert_uint_le(tried, 10);
    ck_assert_uint_eq(atomic_load(&tfm__cl_persistent_bails) - bails, 4 * tried);
    set_stall(&s, 0, 0, 0);
    close_scene(&s);
}
END_TEST

START_TEST(one_worker)
{
    const uint64_t many = decode_with("off", 1);
    tfm_threads_set(1);
    ck_assert_uint_eq(decode_with("on", 1), many);
    ck_assert_uint_gt(atomic_load(&tfm__cl_persistent_runs), 0);
}
END_TEST

START_TEST(one_processor)
{
    cpu_set_t all, one;
    int cpu = 0;

    CPU_ZERO(&one);
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_SET(cpu, &one);
    const uint64_t many = decode_with("off", 1);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    ck_assert_uint_eq(decode_with("on", 1), many);
    ck_assert_int_eq(sched_setaffinity(0, sizeof all, &all), 0);
}
END_TEST

struct worker {
    struct scene scene;
    uint64_t hash;
};

static void *decode_often(void *context)
{
    struct worker *w = context;
    w->hash = decode(w->scene.session, 1);
    for (int i = 0; i < 2; i++) {
        const uint64_t again = decode(w->scene.session, 1);
        w->hash = again == w->hash ? again : 0;
    }
    return NULL;
}

START_TEST(two_sessions_in_two_threads)
{
    struct worker w[2];
    pthread_t threads[2];

    memset(w, 0, sizeof w);
    open_scene(&w[0].scene, "on");
    const uint64_t right = decode(w[0].scene.session, 1);
    w[1].scene = w[0].scene;
    open_session(&w[1].scene);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, decode_often, &w[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(w[0].hash, right);
    ck_assert_uint_eq(w[1].hash, right);
    tfm_session_destroy(w[1].scene.session);
    close_scene(&w[0].scene);
}
END_TEST

/* The child's result comes through a pipe; devices are opened behind the fork. */
static pid_t start_child(int *from)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        struct worker w;
        open_scene(&w.scene, "on");
        decode_often(&w);
        const ssize_t wrote = write(ends[1], &w.hash, sizeof w.hash);
        _exit(wrote == (ssize_t)sizeof w.hash ? 0 : 1);
    }
    close(ends[1]);
    *from = ends[0];
    return child;
}

START_TEST(two_processes)
{
    pid_t children[2];
    int from[2];

    for (int i = 0; i < 2; i++)
        children[i] = start_child(&from[i]);
    const uint64_t right = decode_with("off", 1);
    for (int i = 0; i < 2; i++) {
        uint64_t hash = 0;
        int status = 0;
        ck_assert_int_eq(read(from[i], &hash, sizeof hash), sizeof hash);
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert_uint_eq(hash, right);
        close(from[i]);
    }
}
END_TEST

START_TEST(a_busy_neighbour)
{
    const size_t n = processors() < 2 ? processors() : 2;
    pid_t busy[2];
    struct scene s;

    for (size_t i = 0; i < n; i++) {
        busy[i] = fork();
        ck_assert_int_ge(busy[i], 0);
        if (busy[i] == 0) {
            alarm(100); /* never outlives this test by much */
            for (volatile uint64_t turns = 0;; turns++)
                ;
        }
    }
    open_scene(&s, "on");
    const uint64_t hash = decode(s.session, 1);
    close_scene(&s);
    for (size_t i = 0; i < n; i++) {
        kill(busy[i], SIGKILL);
        waitpid(busy[i], NULL, 0);
    }
    ck_assert_uint_eq(hash, decode_with("off", 1));
}
END_TEST

START_TEST(bad_setting_lists_the_choices)
{
    struct test_devices devices;
    struct tfm_error err = {0};

    ck_assert_int_eq(setenv("TFM_OPENCL_PERSISTENT", "yes", 1), 0);
    ck_assert_int_eq(parts_try(&devices, &err), TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "'yes'"));
    ck_assert_ptr_nonnull(strstr(err.text, "auto, on, off"));
    test_devices_close(&devices);
}
END_TEST

int main(void)
{
    if (!tests_ask(parts_present))
        return tests_skip("the backend cannot be used here");
    const char *tmp = getenv("TMPDIR");
    const struct tiny_llama tiny = tiny_of_phases();
    snprintf(path, sizeof path, "%.80s/tfm-persistent-%ld.gguf", tmp ? tmp : "/tmp",
             (long)getpid());
    tiny_llama_write(&tiny, path);

    Suite *suite = suite_create("persistent");
    TCase *tests = tcase_create("persistent"), *parts = tcase_create("parts");
    tcase_set_timeout(tests, 120); /* processors are kept busy on purpose */
    tcase_set_timeout(parts, 120);
    tcase_add_loop_test(tests, one_launch_and_many_have_the_same_bits, 0, 2);
    tcase_add_loop_test(tests, rows_together_have_the_bits_of_rows_alone, 0, 2);
    tcase_add_loop_test(tests, types_side_by_side, 0, 2);
    tcase_add_test(tests, one_worker);
    tcase_add_test(tests, one_processor);
    tcase_add_test(tests, two_sessions_in_two_threads);
    tcase_add_test(tests, two_processes);
    tcase_add_test(tests, a_busy_neighbour);
    tcase_add_test(tests, bad_setting_lists_the_choices);
    suite_add_tcase(suite, tests);
    tcase_add_test(parts, a_part_stalls_at_each_barrier);
    tcase_add_test(parts, a_bail_out_makes_runs_wait);
    if (processors() > 1) /* one part waits for nobody */
        suite_add_tcase(suite, parts);
    else
        fprintf(stderr, "one processor: no part can be made to stall\n");
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    unlink(path);
    return failed != 0;
}
