/* SPDX-License-Identifier: MIT
 * One plan and one weights object, several execs: threads must not see each other's rows, arena or
 * cache, and no exec or further plan may pack the weights again. A small decoder on one backend. */
#include <check.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/nn.h>
#include <tfm/plan.h>

#include "tests/core/two_execs_cases.h"
#include "tests/devices.h"

enum { VOCAB = 96, WIDTH = 64, CELLS = 16, PROMPT = 5, TOKENS = 12, ROUNDS = 12, CAPACITY = 8 };
enum { STEPS = 1 + TOKENS - PROMPT }; /* the prompt at once, then token by token */

static const struct tfm_nn_decoder_layer layers[] = {
    {.q = TFM_DTYPE_Q4_1,
     .k = TFM_DTYPE_Q8_0,
     .v = TFM_DTYPE_Q4_1,
     .o = TFM_DTYPE_Q4_1,
     .gate = TFM_DTYPE_Q4_1,
     .up = TFM_DTYPE_Q4_1,
     .down = TFM_DTYPE_Q8_0},
    {.q = TFM_DTYPE_F32,
     .k = TFM_DTYPE_F32,
     .v = TFM_DTYPE_F32,
     .o = TFM_DTYPE_Q4_1,
     .gate = TFM_DTYPE_Q4_1,
     .up = TFM_DTYPE_F32,
     .down = TFM_DTYPE_Q4_1},
};

static const struct tfm_nn_decoder config = {
    .vocab = VOCAB,
    .width = WIDTH,
    .layers = 2,
    .heads = 8,
    .kv_heads = 2,
    .head_dim = 8,
    .ffn_width = 96,
    .eps = 1e-5,
    .rope_dims = 8,
    .positions = CELLS,
    .rope_style = TFM_ROPE_ADJACENT,
    .slots = 2,
    .cells = CELLS,
    .cache = TFM_DTYPE_F32,
    .embedding = TFM_DTYPE_Q8_0,
    .tied = 1,
    .layer = layers,
};

/* What the weights borrow, and how often a device said that it has its own copy. */
static struct {
    void *data;
    size_t bytes;
    int is_parameter;
    unsigned taken;
} entries[64];
static size_t n_entries;

static struct test_devices devices;
static struct tfm_graph *graph;
static struct tfm_weights *weights;
static struct tfm_plan *plan;

static void taken(void *context, const void *data, size_t bytes)
{
    size_t i = (size_t)((const char *)context - (const char *)entries) / sizeof *entries;
    ck_assert_uint_lt(i, n_entries);
    ck_assert_ptr_eq(data, entries[i].data);
    ck_assert_uint_eq(bytes, entries[i].bytes);
    entries[i].taken++;
}

/* Values in [-0.5, 0.5) of a linear congruential generator. */
static void fill(enum tfm_dtype dtype, size_t n, void *data)
{
    static uint32_t seed = 12345;
    float *values = malloc(n * sizeof *values);
    ck_assert_ptr_nonnull(values);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 8) / (1 << 24) - 0.5f;
    }
    tfm_dtype_from_f32(dtype, values, data, 0, n);
    free(values);
}

static void borrow(const struct tfm_tensor *tensor)
{
    const struct tfm_dtype_info *info = tfm_dtype_info(tensor->dtype);
    size_t n = (size_t)tfm_tensor_elements(tensor);
    size_t i = n_entries++;
    ck_assert_uint_lt(i, sizeof entries / sizeof *entries);
    entries[i].bytes = n / info->block * info->bytes;
    entries[i].data = malloc(entries[i].bytes);
    entries[i].is_parameter = tensor->kind == TFM_TENSOR_PARAMETER;
    ck_assert_ptr_nonnull(entries[i].data);
    if (entries[i].is_parameter)
        fill(tensor->dtype, n, entries[i].data);
    else
        ck_assert_int_eq(tfm_nn_rope_table(tensor->dtype, config.positions, config.rope_dims, 1e4,
                                           NULL, entries[i].data, NULL),
                         TFM_STATUS_OK);
    struct tfm_error err = {0};
    enum tfm_status status =
        tfm_weights_borrow(weights, tensor->name, tensor->dtype, tensor->rank, tensor->shape,
                           entries[i].data, entries[i].bytes, taken, &entries[i], &err);
    ck_assert_msg(status == TFM_STATUS_OK, "%s", err.text);
}

static struct tfm_plan *compile(uint32_t rows, uint32_t sequences)
{
    const struct tfm_capacity capacity = {rows, sequences, sequences};
    struct tfm_plan *compiled = NULL;
    struct tfm_error err = {0};
    enum tfm_status status =
        tfm_plan_compile(graph, weights, devices.device, devices.n, &capacity, &compiled, &err);
    ck_assert_msg(status == TFM_STATUS_OK, "%s", err.text);
    return compiled;
}

static void setup(void)
{
    struct tfm_error err = {0};
    test_devices_open(&devices);
    ck_assert_int_eq(tfm_graph_create(&graph, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_weights_create(&weights, &err), TFM_STATUS_OK);
    tfm_nn_decoder(graph, &config);
    ck_assert_msg(tfm_graph_check(graph, &err) == TFM_STATUS_OK, "%s", err.text);
    for (uint32_t i = 0; i < tfm_graph_tensor_count(graph); i++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(graph, i);
        if (!tensor->view_of &&
            (tensor->kind == TFM_TENSOR_PARAMETER || tensor->kind == TFM_TENSOR_BUFFER))
            borrow(tensor);
    }
    ck_assert_uint_gt(n_entries, 15);
    plan = compile(CAPACITY, 2);
}

static void teardown(void)
{
    tfm_plan_destroy(plan);
    tfm_graph_destroy(graph);
    tfm_weights_release(weights);
    test_devices_close(&devices);
    for (size_t i = 0; i < n_entries; i++)
        free(entries[i].data);
    memset(entries, 0, sizeof entries);
    n_entries = 0;
}

/* ---- one user of the plan ---- */

struct user {
    struct tfm_exec *exec;
    int32_t ids[CAPACITY], pos[CAPACITY];
    float logits[2][VOCAB];
};

static int user_open(struct user *user, struct tfm_plan *of)
{
    return tfm_exec_create(of, &user->exec, NULL) == TFM_STATUS_OK &&
           tfm_exec_bind(user->exec, "ids", user->ids, sizeof user->ids, NULL) == TFM_STATUS_OK &&
           tfm_exec_bind(user->exec, "pos", user->pos, sizeof user->pos, NULL) == TFM_STATUS_OK &&
           tfm_exec_bind(user->exec, "logits", user->logits, sizeof user->logits, NULL) ==
               TFM_STATUS_OK;
}

/* Token i of the text of a speaker. */
static int32_t token(unsigned speaker, unsigned i)
{
    return (int32_t)((speaker * 37 + i * 11 + i * i * speaker) % VOCAB);
}

/* Feeds a speaker's text; results [STEPS][VOCAB]. Uses no Check: runs in threads. */
static int speak(struct user *user, unsigned speaker, float results[STEPS][VOCAB])
{
    uint32_t past = 0;
    for (unsigned step = 0; step < STEPS; step++) {
        uint32_t n = step ? 1 : PROMPT;
        for (uint32_t i = 0; i < n; i++) {
            user->ids[i] = token(speaker, past + i);
            user->pos[i] = (int32_t)(past + i);
        }
        const int32_t slot = 0, start = 0, before = (int32_t)past, out = (int32_t)n - 1;
        const struct tfm_rows rows = {n, 1, 1, &slot, &start, &before, &out};
        if (tfm_exec_run(user->exec, &rows, NULL) != TFM_STATUS_OK)
            return 0;
        memcpy(results[step], user->logits[0], sizeof results[step]);
        past += n;
    }
    return 1;
}

static float alone[2][STEPS][VOCAB];

static void speak_alone(void)
{
    for (unsigned speaker = 0; speaker < 2; speaker++) {
        struct user user = {0};
        ck_assert(user_open(&user, plan));
        ck_assert(speak(&user, speaker, alone[speaker]));
        tfm_exec_destroy(user.exec);
    }
    ck_assert_int_ne(memcmp(alone[0], alone[1], sizeof alone[0]), 0);
}

struct thread {
    pthread_t id;
    pthread_barrier_t *start;
    unsigned speaker;
    const char *wrong;
};

static void *thread_main(void *context)
{
    struct thread *thread = context;
    struct user user = {0};
    float results[STEPS][VOCAB];
    thread->wrong = user_open(&user, plan) ? NULL : "no exec";
    pthread_barrier_wait(thread->start);
    for (int round = 0; round < ROUNDS && !thread->wrong; round++) {
        memset(results, 0xff, sizeof results);
        if (!speak(&user, thread->speaker, results))
            thread->wrong = "a run failed";
        else if (memcmp(results, alone[thread->speaker], sizeof results) != 0)
            thread->wrong = "other bits than alone";
    }
    tfm_exec_destroy(user.exec);
    return NULL;
}

/* Shared scratch, kernel arguments or cache would mix the two texts. */
START_TEST(two_threads_get_the_bits_of_one)
{
    speak_alone();
    pthread_barrier_t start;
    struct thread threads[2];
    ck_assert_int_eq(pthread_barrier_init(&start, NULL, 2), 0);
    for (unsigned i = 0; i < 2; i++) {
        threads[i] = (struct thread){.start = &start, .speaker = i};
        ck_assert_int_eq(pthread_create(&threads[i].id, NULL, thread_main, &threads[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i].id, NULL);
    pthread_barrier_destroy(&start);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_msg(!threads[i].wrong, "thread %u: %s", i, threads[i].wrong);
}
END_TEST

/* A pack for each plan or exec would double memory and load time. */
START_TEST(weights_are_packed_once)
{
    speak_alone();
    struct tfm_plan *second = compile(1, 1);
    struct user user = {0};
    ck_assert_int_eq(tfm_exec_create(second, &user.exec, NULL), TFM_STATUS_OK);
    tfm_exec_destroy(user.exec);
    tfm_plan_destroy(second);
    /* the reference reads the owner's bytes and never takes them */
    unsigned wanted = strcmp(test_backend, "reference") ? 1 : 0;
    for (size_t i = 0; i < n_entries; i++)
        if (entries[i].is_parameter)
            ck_assert_uint_eq(entries[i].taken, wanted);
        else
            ck_assert_uint_le(entries[i].taken, wanted);
}
END_TEST

/* Sequences of one run must not see each other: slots, starts and pasts mixed up would show. */
START_TEST(two_sequences_in_one_run)
{
    speak_alone();
    struct user user = {0};
    ck_assert(user_open(&user, plan));
    uint32_t past[2] = {0, 0};
    /* speaker 0 runs ahead by its prompt, so that the pasts differ */
    for (unsigned step = 0; step <= STEPS; step++) {
        int32_t slot[2], start[2], before[2], out[2], speaker[2];
        uint32_t n = 0, n_seq = 0;
        for (int s = 0; s < 2; s++) {
            if ((s == 0 && step == STEPS) || (s == 1 && step == 0))
                continue;
            uint32_t rows = past[s] ? 1 : PROMPT;
            slot[n_seq] = 1 - s; /* not the order of the sequences */
            start[n_seq] = (int32_t)n;
            before[n_seq] = (int32_t)past[s];
            for (uint32_t i = 0; i < rows; i++, n++, past[s]++) {
                user.ids[n] = token((unsigned)s, past[s]);
                user.pos[n] = (int32_t)past[s];
            }
            out[n_seq] = (int32_t)n - 1;
            speaker[n_seq++] = s;
        }
        const struct tfm_rows rows = {n, n_seq, n_seq, slot, start, before, out};
        struct tfm_error err = {0};
        ck_assert_msg(tfm_exec_run(user.exec, &rows, &err) == TFM_STATUS_OK, "%s", err.text);
        for (uint32_t q = 0; q < n_seq; q++)
            for (int v = 0; v < VOCAB; v++)
                ck_assert_float_eq_tol(user.logits[q][v],
                                       alone[speaker[q]][step - (unsigned)speaker[q]][v], 1e-4f);
    }
    tfm_exec_destroy(user.exec);
}
END_TEST

int two_execs_cases_run(const char *backend)
{
    test_backend = backend;
    if (!tests_ask(test_devices_present))
        return tests_skip("the backend cannot be used here");
    Suite *suite = suite_create("two execs");
    TCase *tcase = tcase_create("execs");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, two_threads_get_the_bits_of_one);
    tcase_add_test(tcase, weights_are_packed_once);
    tcase_add_test(tcase, two_sequences_in_one_run);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
