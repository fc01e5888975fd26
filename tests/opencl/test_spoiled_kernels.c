/* SPDX-License-Identifier: MIT
 * Proves that the kernels are what runs: TFM_KERNEL_PATH points at a copy of kernels/ in which one result
 * of one file is spoiled, and the logits must leave the tolerance of the golden test; with a faithful
 * copy they must stay in it. An embedded, cached or host-side path would give the right logits. And the
 * backend's own counters show what prompts go through: our own kernel, or CLBlast where it is chosen. */
#include <check.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tfm/llm.h>

#include "backends/opencl/counters.h"
#include "tests/devices.h"
#include "tests/golden/golden.h"
#include "tests/llm/naive_llama.h"
#include "tests/llm/tiny_llama.h"

static const double TOLERANCE = 1e-3;

/* Every occurrence of `from` in kernels/FILE becomes `to`. When a kernel is rewritten and the text is
 * gone, the test says so: choose a new place where a result is made or stored. */
static const struct spoil {
    const char *file, *from, *to;
} spoils[] = {
    {"rms_norm.cl", "+ s->eps)", "+ s->eps) * 1.01f"},
    {"rope.cl", "tfm_store16(", "tfm_store16(0.25f + "},
    {"swiglu.cl", "tfm_storev(", "tfm_storev(0.25f + "},
    {"gqa_attention_split.cl", "1.0f / mass", "1.01f / mass"},
    {"linear_panels.cl", "sums[2 * t + 1] + bias[1]", "sums[2 * t + 1] * 1.01f + bias[1]"},
    {"unpack.cl", "fma(low, d, m)", "fma(low, d, m * 1.01f)"},
};
/* Of runs of few rows. */
static const struct spoil few_spoils[] = {
    {"rms_norm.cl", "+ s->eps)", "+ s->eps) * 1.01f"},
    {"rope.cl", "tfm_store16(", "tfm_store16(0.25f + "},
    {"swiglu.cl", "return tfm_silu_of", "return 0.25f + tfm_silu_of"},
    {"project.cl", "vload16(row, raw) + b", "vload16(row, raw) * 1.01f + b"},
    {"gqa_attention_few.cl", "mass += weight", "mass += weight * 1.01f"},
    {"gqa_attention_few_merge.cl", "1.0f / all", "1.01f / all"},
    {"persistent.cl", "(ulong)row * s->width, s)", "(ulong)row * s->width, s), own[0] += 0.25f"},
};
enum { N_FEW_SPOILS = sizeof few_spoils / sizeof *few_spoils };
/* The last two show in long prompts only. */
enum { N_SPOILS = sizeof spoils / sizeof *spoils, N_SHORT = N_SPOILS - 2 };

static char folder[64]; /* of this program's files */
static char tiny_path[128];

/* ---- a copy of the kernels ---- */

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *text = calloc(size + 1, 1);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(fread(text, 1, size, file), size);
    fclose(file);
    return text;
}

/* Writes text with the replacement of a spoil, NULL = as it is; returns how many were made. */
static int write_text(const char *path, const char *text, const struct spoil *spoil)
{
    int made = 0;
    FILE *file = fopen(path, "wb");
    ck_assert_msg(file != NULL, "%s cannot be written", path);
    while (*text) {
        const char *next = spoil ? strstr(text, spoil->from) : NULL;
        size_t n = next ? (size_t)(next - text) : strlen(text);
        ck_assert_uint_eq(fwrite(text, 1, n, file), n);
        text += n;
        if (next) {
            fputs(spoil->to, file);
            text += strlen(spoil->from);
            made++;
        }
    }
    ck_assert_int_eq(fclose(file), 0);
    return made;
}

static void clear_folder(const char *path)
{
    DIR *dir = opendir(path);
    char name[512];
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        unlink(name);
    }
    if (dir)
        closedir(dir);
    rmdir(path);
}

/* Copies kernels/ with one file spoiled and points TFM_KERNEL_PATH there. */
static void use_copy(const struct spoil *spoil, char copy[128])
{
    const char *top = getenv("TFM_TEST_SRCDIR");
    char kernels[512], from[1024], to[512];
    int files = 0, made = 0;
    snprintf(kernels, sizeof kernels, "%s/kernels", top ? top : ".");
    snprintf(copy, 128, "%s/kernels-XXXXXX", folder);
    ck_assert_ptr_nonnull(mkdtemp(copy));
    DIR *dir = opendir(kernels);
    ck_assert_msg(dir != NULL, "no folder %s", kernels);
    for (struct dirent *entry; (entry = readdir(dir));) {
        const char *dot = strrchr(entry->d_name, '.');
        if (entry->d_name[0] == '.' || !dot || (strcmp(dot, ".cl") && strcmp(dot, ".h")))
            continue;
        snprintf(from, sizeof from, "%s/%s", kernels, entry->d_name);
        snprintf(to, sizeof to, "%s/%s", copy, entry->d_name);
        char *text = read_text(from);
        int here = spoil && !strcmp(entry->d_name, spoil->file);
        made += write_text(to, text, here ? spoil : NULL);
        files++;
        free(text);
    }
    closedir(dir);
    ck_assert_int_gt(files, 4);
    if (spoil)
        ck_assert_msg(made > 0,
                      "kernels/%s has no \"%s\" any more: nothing was spoiled; give the table in "
                      "this test another place where that file makes a result",
                      spoil->file, spoil->from);
    ck_assert_int_eq(setenv("TFM_KERNEL_PATH", copy, 1), 0);
}

/* ---- how far the logits are from what they must be ---- */

static void run(const char *path, const int32_t *ids, size_t n,
                double (*distance)(void *context, const float *logits, size_t vocab), void *context,
                double *result)
{
    struct test_devices devices;
    struct tfm_model *model = NULL;
    struct tfm_session *session = NULL;
    struct tfm_session_options options;
    struct tfm_error err = {0};
    test_devices_open(&devices);
    ck_assert_msg(tfm_model_open(path, &model, &err) == TFM_STATUS_OK, "%s", err.text);
    tfm_session_defaults(&options);
    options.cache = TFM_DTYPE_F32;
    options.context = 64;
    ck_assert_msg(tfm_session_create(model, devices.device, devices.n, &options, &session, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
    ck_assert_msg(tfm_session_feed(session, ids, n, &err) == TFM_STATUS_OK, "%s", err.text);
    *result =
        distance(context, tfm_session_logits(session), (size_t)tfm_model_config(model)->vocab);
    tfm_session_destroy(session);
    tfm_model_close(model);
    test_devices_close(&devices);
}

/* Largest difference, infinity when one is NaN. */
static double from_naive(void *context, const float *logits, size_t vocab)
{
    const double *right = context;
    double worst = 0;
    for (size_t i = 0; i < vocab; i++)
        if (!(fabs(logits[i] - right[i]) <= worst))
            worst = isnan(logits[i]) ? INFINITY : fabs(logits[i] - right[i]);
    return worst;
}

/* Many rows for a linear, or few enough for phases. */
enum { MANY = 37, FEW = 5 };
static size_t tiny_rows = MANY;

static double tiny_distance(void)
{
    int32_t ids[MANY];
    static double right[TINY_VOCAB];
    double result = 0;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        ids[i] = (int32_t)((i * 75 + 5) % 251);
    struct naive_llama *naive = naive_llama_open(tiny_path);
    naive_llama_logits(naive, ids, tiny_rows, 0, right);
    naive_llama_close(naive);
    run(tiny_path, ids, tiny_rows, from_naive, right, &result);
    return result;
}

static double from_golden(void *context, const float *logits, size_t vocab)
{
    return golden_distance(context, logits, vocab);
}

static double model_distance(void)
{
    struct golden *golden = golden_read("smollm2-q4_1.json");
    double result = 0;
    ck_assert_ptr_nonnull(golden);
    run(test_model_path(), golden->cases[2].ids, golden->cases[2].n, from_golden,
        &golden->cases[2].top[0], &result);
    golden_free(golden);
    return result;
}

static double distance_with(const struct spoil *spoil, double (*distance)(void))
{
    char copy[128];
    use_copy(spoil, copy);
    double result = distance();
    clear_folder(copy);
    if (getenv("TFM_TEST_VERBOSE"))
        fprintf(stderr, "%s: %g\n", spoil ? spoil->file : "faithful copy", result);
    return result;
}

START_TEST(tiny_with_faithful_copy)
{
    double distance = distance_with(NULL, tiny_distance);
    ck_assert_msg(distance <= TOLERANCE, "off by %g", distance);
}
END_TEST

START_TEST(tiny_with_spoiled_kernel)
{
    double distance = distance_with(&spoils[_i], tiny_distance);
    ck_assert_msg(distance > TOLERANCE, "kernels/%s is spoiled and the logits do not show it (%g)",
                  spoils[_i].file, distance);
}
END_TEST

START_TEST(few_rows_with_faithful_copy)
{
    tiny_rows = FEW;
    double distance = distance_with(NULL, tiny_distance);
    ck_assert_msg(distance <= TOLERANCE, "off by %g", distance);
}
END_TEST

START_TEST(few_rows_with_spoiled_kernel)
{
    tiny_rows = FEW;
    double distance = distance_with(&few_spoils[_i], tiny_distance);
    ck_assert_msg(distance > TOLERANCE, "kernels/%s is spoiled and the logits do not show it (%g)",
                  few_spoils[_i].file, distance);
}
END_TEST

START_TEST(model_with_faithful_copy)
{
    double distance = distance_with(NULL, model_distance);
    ck_assert_msg(distance <= TOLERANCE, "off by %g", distance);
}
END_TEST

START_TEST(model_with_spoiled_kernel)
{
    double distance = distance_with(&spoils[_i], model_distance);
    ck_assert_msg(distance > TOLERANCE, "kernels/%s is spoiled and the logits do not show it (%g)",
                  spoils[_i].file, distance);
}
END_TEST

/* ---- the counters ---- */

/* A prompt of 64 tokens goes through CLBlast's SGEMM where that is chosen, a single token never. */
static void count_sgemm(const char *path, int clblast)
{
    struct test_devices devices;
    struct tfm_model *model = NULL;
    struct tfm_session *session = NULL;
    struct tfm_error err = {0};
    int32_t ids[64];
    for (int i = 0; i < 64; i++)
        ids[i] = 3 * i + 7;
    if (clblast)
        setenv("TFM_OPENCL_GEMM", "clblast", 1);
    test_devices_open(&devices);
    const struct tfm_opencl_counters *counters =
        tfm_device_extension(devices.device[0], TFM_OPENCL_COUNTERS);
    ck_assert_ptr_nonnull(counters);
    ck_assert_msg(tfm_model_open(path, &model, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_msg(tfm_session_create(model, devices.device, devices.n, NULL, &session, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
    uint64_t sgemm = counters->sgemm_calls(), launches = counters->kernel_launches();
    ck_assert_msg(tfm_session_feed(session, ids, 64, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_int_eq(counters->sgemm_calls() > sgemm, clblast);
    ck_assert_uint_gt(counters->kernel_launches(), launches);
    sgemm = counters->sgemm_calls();
    launches = counters->kernel_launches();
    ck_assert_msg(tfm_session_feed(session, ids, 1, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_uint_eq(counters->sgemm_calls(), sgemm);
    ck_assert_uint_gt(counters->kernel_launches(), launches);
    tfm_session_destroy(session);
    tfm_model_close(model);
    test_devices_close(&devices);
}

START_TEST(tiny_prompt_uses_sgemm)
{
    count_sgemm(tiny_path, _i);
}
END_TEST

START_TEST(model_prompt_uses_sgemm)
{
    count_sgemm(test_model_path(), _i);
}
END_TEST

/* As the real model: Q4_1 with a tied Q8_0 embedding. */
static void write_tiny(void)
{
    struct tiny_llama tiny = tiny_llama_default();
    tiny.heads = 4;
    tiny.head_dim = 16;
    tiny.context = 128;
    tiny.type = TINY_Q4_1;
    tiny.embedding_type = TINY_Q8_0;
    snprintf(tiny_path, sizeof tiny_path, "%s/tiny.gguf", folder);
    tiny_llama_write(&tiny, tiny_path);
}

int main(void)
{
    if (!tests_ask(test_devices_present))
        return tests_skip("the backend cannot be used here");
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.40s/tfm-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) {
        perror(folder);
        return 99;
    }
    write_tiny();
    Suite *suite = suite_create("spoiled kernels");
    TCase *tiny = tcase_create("tiny"), *model = tcase_create("model");
    tcase_set_timeout(tiny, 60);
    tcase_add_test(tiny, tiny_with_faithful_copy);
    tcase_add_loop_test(tiny, tiny_with_spoiled_kernel, 0, N_SPOILS);
    tcase_add_test(tiny, few_rows_with_faithful_copy);
    tcase_add_loop_test(tiny, few_rows_with_spoiled_kernel, 0, N_FEW_SPOILS);
    tcase_add_loop_test(tiny, tiny_prompt_uses_sgemm, 0, 2);
    suite_add_tcase(suite, tiny);
    tcase_set_timeout(model, 60);
    if (test_model_path()) {
        tcase_add_test(model, model_with_faithful_copy);
        tcase_add_loop_test(model, model_with_spoiled_kernel, 0, N_SHORT);
        tcase_add_loop_test(model, model_prompt_uses_sgemm, 0, 2);
    }
    suite_add_tcase(suite, model);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    clear_folder(folder);
    return failed != 0;
}
