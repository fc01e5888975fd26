/* SPDX-License-Identifier: MIT
 * metrics.jsonl: what is added is read back, a kill at any byte leaves a file that goes on, a resumed run cuts the
 * steps that it does again, and a file that is none of ours is not touched. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <check.h>
#include <jansson.h>

#include "lib/tools/metrics.h"
#include "tests/folder.h"

static struct tfm__metrics *metrics;
static struct tfm__metrics_columns columns;

static void leave_folder(void)
{
    tfm__metrics_close(metrics);
    tfm__metrics_columns_deinit(&columns);
    folder_leave((const char *const[]){"m"}, 1);
}

static struct tfm__metrics_line line_of(uint64_t step)
{
    return (struct tfm__metrics_line){.step = step,
                                      .tokens = step * 2048,
                                      .loss = 8.0 / (double)step,
                                      .validation = step % 2 ? NAN : 9.0 / (double)step,
                                      .rate = 1e-3,
                                      .norm = 0.5,
                                      .tok_s = 8000,
                                      .ms = 256,
                                      .fallback = 0,
                                      .backend = "opencl",
                                      .device = "a \"device\""};
}

static enum tfm_status open_keeping(uint64_t keep, struct tfm_error *err)
{
    tfm__metrics_close(metrics);
    metrics = NULL;
    return tfm__metrics_open("m", keep, &metrics, err);
}

static void add(uint64_t first, uint64_t last)
{
    struct tfm_error err = {0};
    for (uint64_t step = first; step <= last; step++) {
        const struct tfm__metrics_line line = line_of(step);
        ck_assert_msg(tfm__metrics_add(metrics, &line, &err) == TFM_STATUS_OK, "%s", err.text);
    }
}

static void load(void)
{
    struct tfm_error err = {0};
    tfm__metrics_columns_deinit(&columns);
    ck_assert_msg(tfm__metrics_load("m", &columns, &err) == TFM_STATUS_OK, "%s", err.text);
}

static size_t file(char text[4096])
{
    FILE *in = fopen("m", "rb");
    ck_assert_ptr_nonnull(in);
    const size_t size = fread(text, 1, 4095, in);
    fclose(in);
    text[size] = 0;
    return size;
}

static void put_file(const char *text, size_t size)
{
    FILE *out = fopen("m", "wb");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(text, 1, size, out), size);
    ck_assert_int_eq(fclose(out), 0);
}

START_TEST(lines_are_read_back)
{
    struct tfm_error err = {0};
    ck_assert_int_eq(open_keeping(0, &err), TFM_STATUS_OK);
    add(1, 600); /* more than the columns begin with */
    load();
    ck_assert_uint_eq(columns.n, 600);
    ck_assert_uint_eq(columns.n_validation, 300);
    for (size_t i = 0; i < 600; i++) {
        ck_assert(columns.step[i] == (double)(i + 1));
        ck_assert(columns.tokens[i] == (double)(i + 1) * 2048);
        ck_assert_double_eq_tol(columns.loss[i], 8.0 / (double)(i + 1), 1e-7);
    }
    ck_assert(columns.validation_step[1] == 4 && columns.validation_tokens[1] == 4 * 2048);
    ck_assert_double_eq_tol(columns.validation[1], 9.0 / 4, 1e-7);
}
END_TEST

START_TEST(a_line_holds_every_key)
{
    static const char *const keys[] = {"step",    "tokens", "loss",    "validation_loss",
                                       "rate",    "norm",   "tok_s",   "ms",
                                       "backend", "device", "fallback"};
    struct tfm_error err = {0};
    char text[4096];
    const struct tfm__metrics_line line = line_of(2);

    ck_assert_int_eq(open_keeping(0, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm__metrics_add(metrics, &line, &err), TFM_STATUS_OK);
    const size_t size = file(text);
    ck_assert(text[size - 1] == '\n' && strchr(text, '\n') == text + size - 1);
    json_t *object = json_loadb(text, size, 0, NULL);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        ck_assert_msg(json_object_get(object, keys[i]) != NULL, "no %s in %s", keys[i], text);
    ck_assert_uint_eq(json_object_size(object), sizeof keys / sizeof *keys);
    ck_assert_str_eq(json_string_value(json_object_get(object, "device")), "a \"device\"");
    json_decref(object);
}
END_TEST

START_TEST(numbers_that_are_not_finite_are_left_out)
{
    struct tfm_error err = {0};
    char text[4096];
    struct tfm__metrics_line line = line_of(1);

    line.loss = NAN;
    line.norm = INFINITY;
    ck_assert_int_eq(open_keeping(0, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm__metrics_add(metrics, &line, &err), TFM_STATUS_OK);
    json_t *object = json_loadb(text, file(text), 0, NULL);
    ck_assert_ptr_nonnull(object);
    ck_assert(!json_object_get(object, "loss") && !json_object_get(object, "norm") &&
              !json_object_get(object, "validation_loss") && json_object_get(object, "rate"));
    json_decref(object);
    load();
    ck_assert(columns.n == 1 && isnan(columns.loss[0]) && columns.n_validation == 0);
}
END_TEST

/* A process may be killed after any byte of a write. */
START_TEST(killed_after_any_byte)
{
    struct tfm_error err = {0};
    char whole[4096], now[4096];

    ck_assert_int_eq(open_keeping(0, &err), TFM_STATUS_OK);
    add(1, 3);
    const size_t size = file(whole);
    const size_t second = (size_t)(strchr(whole, '\n') - whole) + 1;
    const size_t third = (size_t)(strchr(whole + second, '\n') - whole) + 1;
    for (size_t left = 0; left <= size; left++) {
        put_file(whole, left);
        load(); /* a reader beside the run */
        ck_assert_msg(open_keeping(UINT64_MAX, &err) == TFM_STATUS_OK, "%zu: %s", left, err.text);
        /* a line is whole with or without its line end */
        const size_t lines = (left + 1 >= second) + (left + 1 >= third) + (left + 1 >= size);
        const size_t want = lines == 0 ? 0 : lines == 1 ? second : lines == 2 ? third : size;
        ck_assert_uint_eq(columns.n, lines);
        ck_assert_uint_eq(file(now), want);
        ck_assert(memcmp(now, whole, want) == 0);
        add(lines + 1, 3);
        ck_assert_uint_eq(file(now), size);
        ck_assert(memcmp(now, whole, size) == 0);
    }
}
END_TEST

static const struct {
    uint64_t keep;
    size_t lines;
} keeps[] = {{0, 0}, {1, 1}, {4, 4}, {5, 5}, {9, 5}};

START_TEST(later_steps_are_cut)
{
    struct tfm_error err = {0};

    ck_assert_int_eq(open_keeping(0, &err), TFM_STATUS_OK);
    add(1, 5);
    ck_assert_int_eq(open_keeping(keeps[_i].keep, &err), TFM_STATUS_OK);
    load();
    ck_assert_uint_eq(columns.n, keeps[_i].lines);
    add(keeps[_i].lines + 1, 7);
    load();
    ck_assert_uint_eq(columns.n, 7);
    for (size_t i = 0; i < 7; i++)
        ck_assert(columns.step[i] == (double)(i + 1));
}
END_TEST

static const struct {
    const char *text, *said;
} foreign[] = {
    {"hello\n", "line 1"},
    {"{\"step\":1}\n{\"step\":\"2\"}\n", "line 2"},
    {"{\"step\":1}\n\n{\"step\":2}\n", "line 2"},
    {"{\"step\":0}\n", "line 1"},
    {"[1]\n", "line 1"},
    {"{\"step\":1} {\n", "line 1"},
};

START_TEST(a_foreign_file_is_not_touched)
{
    struct tfm_error err = {0};
    char text[4096];

    put_file(foreign[_i].text, strlen(foreign[_i].text));
    ck_assert_int_eq(open_keeping(UINT64_MAX, &err), TFM_STATUS_FORMAT);
    ck_assert_msg(strstr(err.text, foreign[_i].said) != NULL, "%s", err.text);
    ck_assert_ptr_null(metrics);
    ck_assert_int_eq(tfm__metrics_load("m", &columns, &err), TFM_STATUS_FORMAT);
    file(text);
    ck_assert_str_eq(text, foreign[_i].text);
}
END_TEST

/* As on a full disk: only a part of the line fits. */
START_TEST(a_short_write_leaves_whole_lines)
{
    struct tfm_error err = {0};
    const struct tfm__metrics_line line = line_of(3);
    struct rlimit limit;
    char before[4096], after[4096];

    ck_assert_int_eq(open_keeping(0, &err), TFM_STATUS_OK);
    add(1, 2);
    const size_t size = file(before);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const rlim_t most = limit.rlim_cur;
    limit.rlim_cur = size + 20;
    /* nothing of Check's own, which writes files, too, before the limit is gone again */
    const int set = setrlimit(RLIMIT_FSIZE, &limit);
    const enum tfm_status status = tfm__metrics_add(metrics, &line, &err);
    limit.rlim_cur = most;
    const int unset = setrlimit(RLIMIT_FSIZE, &limit);
    ck_assert(set == 0 && unset == 0);
    ck_assert_int_eq(status, TFM_STATUS_IO);
    ck_assert_uint_eq(file(after), size);
    ck_assert_str_eq(before, after);
    add(3, 3);
    load();
    ck_assert_uint_eq(columns.n, 3);
}
END_TEST

START_TEST(files_that_cannot_be_opened)
{
    struct tfm_error err = {TFM_STATUS_FORMAT, "of an earlier call"};

    ck_assert_int_eq(tfm__metrics_open("nowhere/m", 0, &metrics, &err), TFM_STATUS_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "nowhere/m"));
    ck_assert_int_eq(tfm__metrics_open(".", 0, &metrics, &err), TFM_STATUS_IO);
    ck_assert_int_eq(tfm__metrics_open("/dev/null", 0, &metrics, &err), TFM_STATUS_IO);
    ck_assert_int_eq(tfm__metrics_load("nowhere/m", &columns, &err), TFM_STATUS_IO);
    ck_assert_int_eq(tfm__metrics_load(".", &columns, &err), TFM_STATUS_IO);
    ck_assert_ptr_null(metrics);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("metrics");
    TCase *tcase = tcase_create("metrics");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, folder_enter, leave_folder);
    tcase_add_test(tcase, lines_are_read_back);
    tcase_add_test(tcase, a_line_holds_every_key);
    tcase_add_test(tcase, numbers_that_are_not_finite_are_left_out);
    tcase_add_test(tcase, killed_after_any_byte);
    tcase_add_loop_test(tcase, later_steps_are_cut, 0, (int)(sizeof keeps / sizeof *keeps));
    tcase_add_loop_test(tcase, a_foreign_file_is_not_touched, 0,
                        (int)(sizeof foreign / sizeof *foreign));
    tcase_add_test(tcase, a_short_write_leaves_whole_lines);
    tcase_add_test(tcase, files_that_cannot_be_opened);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
