/* SPDX-License-Identifier: MIT
 * The memory of a training: what grows with tokens times classes, or with queries times keys, is made by pieces. */
#include "tests/train/memory_cases.h"

#include <stdio.h>

#include <tfm/plan.h>
#include <tfm/trainer.h>

#include "tests/core/runner.h"
#include "tests/devices.h"
#include "tests/folder.h"

static struct test_devices devices;
static struct tfm_dataset *dataset;

static void leave(void)
{
    tfm_dataset_close(dataset);
    test_devices_close(&devices);
    folder_leave((const char *const[]){"ids"}, 1);
}

static void ok(enum tfm_status status, const struct tfm_error *err)
{
    ck_assert_msg(status == TFM_STATUS_OK, "%s", err->text);
}

static void write_ids(int64_t vocab, int64_t n)
{
    struct tfm_dataset_writer *writer = NULL;
    struct tfm_error err = {0};

    ok(tfm_dataset_writer_create("ids", (uint64_t)vocab, 5, &writer, &err), &err);
    for (int64_t i = 0; i < n; i++) {
        const int32_t id = (int32_t)(i * 7 % vocab);
        ok(tfm_dataset_writer_add(writer, &id, 1, &err), &err);
    }
    ok(tfm_dataset_writer_finish(writer, &err), &err);
    tfm_dataset_writer_destroy(writer);
    ok(tfm_dataset_open("ids", &dataset, &err), &err);
}

/* forbidden: bytes of the matrix, in F32, that must not be there as a whole. */
static const struct {
    const char *what, *shape;
    int64_t vocab, length, sequences;
    size_t forbidden;
} cases[] = {
    {"logits", "wide", 20000, 128, 8, (size_t)20000 * 128 * 8 * 4},
    {"scores of one head", "wide", 11, 4096, 1, (size_t)4096 * 4096 * 4},
    /* of devices like GPUs; backends without shapes have the same twice */
    {"logits", "group", 20000, 128, 8, (size_t)20000 * 128 * 8 * 4},
    {"scores of one head", "group", 11, 4096, 1, (size_t)4096 * 4096 * 4},
};

/* Catches: logits of all tokens, or scores of all pairs of tokens, that a plan or a kernel keeps. */
START_TEST(large_matrices_are_never_whole)
{
    const struct tfm_nn_decoder model = {.vocab = cases[_i].vocab,
                                         .width = 16,
                                         .layers = 2,
                                         .heads = 4,
                                         .kv_heads = 2,
                                         .head_dim = 4,
                                         .ffn_width = 24,
                                         .eps = 1e-5,
                                         .positions = cases[_i].length,
                                         .tied = 1};
    struct tfm_trainer_settings settings;
    struct tfm_trainer *trainer = NULL;
    struct tfm_plan_summary plan;
    struct tfm_error err = {0};

    ck_assert_int_eq(setenv("TFM_OPENCL_SHAPE", cases[_i].shape, 1), 0);
    test_devices_open(&devices);
    write_ids(cases[_i].vocab, cases[_i].length * cases[_i].sequences + 1);
    tfm_trainer_settings_defaults(&settings);
    settings.length = cases[_i].length;
    settings.sequences = cases[_i].sequences;
    settings.steps = 1;
    settings.rate = 1e-3;
    settings.held_out = 0;
    const struct tfm_trainer_data data = {dataset, NULL};
    ok(tfm_trainer_create(&model, &settings, &data, NULL, devices.device, devices.n, &trainer,
                          &err),
       &err);
    tfm_trainer_summarize(trainer, &plan);
    ck_assert_uint_eq(plan.fallbacks, 0);
    ck_assert_msg(plan.arena_bytes < cases[_i].forbidden / 2,
                  "%s, %s: %zu bytes of intermediates and workspace; %s alone are %zu",
                  test_backend, cases[_i].shape, plan.arena_bytes, cases[_i].what,
                  cases[_i].forbidden);
    tfm_trainer_destroy(trainer);
}
END_TEST

int memory_cases_run(const char *backend)
{
    test_backend = backend;
    if (!tests_ask(test_devices_present))
        return tests_skip("the backend cannot be used here");
    Suite *suite = suite_create("memory of training");
    TCase *tcase = tests_case(suite, "memory");
    const int n = (int)(sizeof cases / sizeof *cases);

    tcase_set_timeout(tcase, 240); /* kernels of training are compiled */
    tcase_add_checked_fixture(tcase, folder_enter, leave);
    tcase_add_loop_test(tcase, large_matrices_are_never_whole, 0,
                        strcmp(backend, "reference") == 0 ? n / 2 : n);
    return tests_run(suite);
}
