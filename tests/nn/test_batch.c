/* SPDX-License-Identifier: MIT
 * Rows from a mask. Faults caught: positions counted from the padded start, segments that run into each
 * other, a mask of another length, padding that comes back as garbage, numbers of a past forgotten. */
#include <check.h>

#include <string.h>

#include <tfm/batch.h>

#include "tests/core/runner.h"

enum { MOST = 12 };

static const struct {
    const char *name;
    int64_t B, T;
    int32_t mask[MOST];
    uint32_t n, n_seq, n_out;
    int32_t source[MOST], pos[MOST], start[4], out[4];
} rows[] = {
    {"full",
     2,
     3,
     {1, 1, 1, 1, 1, 1},
     6,
     2,
     2,
     {0, 1, 2, 3, 4, 5},
     {0, 1, 2, 0, 1, 2},
     {0, 3},
     {2, 5}},
    {"left padding",
     2,
     3,
     {1, 1, 1, 0, 1, 1},
     5,
     2,
     2,
     {0, 1, 2, 4, 5},
     {0, 1, 2, 0, 1},
     {0, 3},
     {2, 4}},
    {"right padding", 2, 3, {1, 0, 0, 1, 1, 0}, 3, 2, 2, {0, 3, 4}, {0, 0, 1}, {0, 1}, {0, 2}},
    {"both sides", 1, 5, {0, 1, 1, 0, 0}, 2, 1, 1, {1, 2}, {0, 1}, {0}, {1}},
    {"packed",
     1,
     6,
     {1, 1, 2, 2, 2, 3},
     6,
     3,
     3,
     {0, 1, 2, 3, 4, 5},
     {0, 1, 0, 1, 2, 0},
     {0, 2, 5},
     {1, 4, 5}},
    {"the header's example",
     3,
     3,
     {1, 1, 1, 0, 1, 1, 1, 0, 2},
     7,
     4,
     4,
     {0, 1, 2, 4, 5, 6, 8},
     {0, 1, 2, 0, 1, 0, 0},
     {0, 3, 5, 6},
     {2, 4, 5, 6}},
    {"an empty line between",
     3,
     2,
     {1, 1, 0, 0, 1, 1},
     4,
     3,
     2,
     {0, 1, 4, 5},
     {0, 1, 0, 1},
     {0, 2, 2},
     {1, 3}},
    {"nothing at all", 2, 2, {0, 0, 0, 0}, 0, 2, 0, {0}, {0}, {0, 0}, {0}},
    {"one number in two lines is two sequences",
     2,
     2,
     {7, 7, 7, 7},
     4,
     2,
     2,
     {0, 1, 2, 3},
     {0, 1, 0, 1},
     {0, 2},
     {1, 3}},
};

static void same(const char *name, const char *what, const int32_t *got, const int32_t *want,
                 uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        ck_assert_msg(got[i] == want[i], "%s: %s[%u] is %d, not %d", name, what, i, got[i],
                      want[i]);
}

START_TEST(masks)
{
    const size_t n = (size_t)(rows[_i].B * rows[_i].T);
    const char *name = rows[_i].name;
    struct tfm_batch batch = {0};
    int32_t ids[MOST], gathered[MOST], back[MOST];

    ck_assert_int_eq(
        tfm_nn_rows_from_mask(rows[_i].mask, n, rows[_i].B, rows[_i].T, NULL, 0, &batch, NULL),
        TFM_STATUS_OK);
    ck_assert_uint_eq(batch.rows.n, rows[_i].n);
    ck_assert_uint_eq(batch.rows.n_seq, rows[_i].n_seq);
    ck_assert_uint_eq(batch.rows.n_out, rows[_i].n_out);
    same(name, "source", batch.source, rows[_i].source, batch.rows.n);
    same(name, "pos", batch.pos, rows[_i].pos, batch.rows.n);
    same(name, "start", batch.rows.start, rows[_i].start, batch.rows.n_seq);
    same(name, "out", batch.rows.out, rows[_i].out, batch.rows.n_out);
    for (uint32_t s = 0; s < batch.rows.n_seq; s++) {
        ck_assert_int_eq(batch.rows.slot[s], (int32_t)s);
        ck_assert_int_eq(batch.rows.past[s], 0);
    }
    for (size_t i = 0; i < n; i++)
        ids[i] = 100 + (int32_t)i;
    ck_assert_int_eq(tfm_batch_gather(&batch, ids, n, gathered, NULL), TFM_STATUS_OK);
    memset(back, 0x55, sizeof back);
    ck_assert_int_eq(tfm_batch_scatter(&batch, gathered, sizeof *back, back, n, NULL),
                     TFM_STATUS_OK);
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(back[i], rows[_i].mask[i] ? ids[i] : 0);
    tfm_batch_deinit(&batch);
    tfm_batch_deinit(&batch); /* nothing is left: fine */
}
END_TEST

START_TEST(a_past)
{
    static const int32_t mask[4] = {1, 1, 0, 1}, past[2] = {10, 3};
    struct tfm_batch batch;

    ck_assert_int_eq(tfm_nn_rows_from_mask(mask, 4, 2, 2, past, 2, &batch, NULL), TFM_STATUS_OK);
    same("past", "past", batch.rows.past, past, 2);
    same("past", "pos", batch.pos, (const int32_t[]){10, 11, 3}, 3);
    tfm_batch_deinit(&batch);
}
END_TEST

START_TEST(refusals)
{
    static const int32_t past[3] = {1, 1, 1}, negative[2] = {1, -4}, far[2] = {0, INT32_MAX};
    static const struct {
        int32_t mask[6];
        size_t n;
        int64_t B, T;
        const int32_t *past;
        size_t n_past;
        enum tfm_status status;
        const char *words[2];
    } bad[] = {
        {{1, 1, 1, 1, 1}, 5, 2, 3, NULL, 0, TFM_STATUS_SHAPE, {"5 values", "[2, 3] of 6"}},
        {{1, 1, 1, 1, 1, 1}, 6, 1, 3, NULL, 0, TFM_STATUS_SHAPE, {"6 values", "of 3"}},
        {{1}, 1, 0, 3, NULL, 0, TFM_STATUS_INVALID_ARGUMENT, {"[0, 3]", "positive"}},
        {{1}, 1, 1, -3, NULL, 0, TFM_STATUS_INVALID_ARGUMENT, {"[1, -3]", "positive"}},
        {{1}, 1, INT64_MAX, 2, NULL, 0, TFM_STATUS_INVALID_ARGUMENT, {"2]", "2^31-1"}},
        {{1, 1, 0, 1, 0, 1}, 6, 1, 6, NULL, 0, TFM_STATUS_INVALID_ARGUMENT, {"segment 1", "torn"}},
        {{1, 1, 1, 2, 3, 2},
         6,
         2,
         3,
         NULL,
         0,
         TFM_STATUS_INVALID_ARGUMENT,
         {"line 1", "at 0 and again at 2"}},
        {{1, -1, 1, 1, 1, 1}, 6, 2, 3, NULL, 0, TFM_STATUS_INVALID_ARGUMENT, {"-1", "line 0"}},
        {{1, 1, 1, 1, 1, 1}, 6, 2, 3, past, 3, TFM_STATUS_SHAPE, {"3 sequences", "has 2"}},
        {{1, 1, 1, 1, 1, 1},
         6,
         2,
         3,
         negative,
         2,
         TFM_STATUS_INVALID_ARGUMENT,
         {"-4", "sequence 1"}},
        {{1, 1, 1, 1, 1, 1}, 6, 2, 3, far, 2, TFM_STATUS_INVALID_ARGUMENT, {"2147483647", "past"}},
    };
    struct tfm_batch batch = {.elements = 77};
    struct tfm_error err = {0};

    ck_assert_int_eq(tfm_nn_rows_from_mask(bad[_i].mask, bad[_i].n, bad[_i].B, bad[_i].T,
                                           bad[_i].past, bad[_i].n_past, &batch, &err),
                     bad[_i].status);
    for (int i = 0; i < 2; i++)
        ck_assert_msg(strstr(err.text, bad[_i].words[i]) != NULL, "%s", err.text);
    ck_assert_int_eq(batch.elements, 77); /* untouched */
}
END_TEST

/* Ids and results of another batch than the mask's. */
START_TEST(other_lengths)
{
    static const int32_t mask[4] = {1, 1, 0, 1};
    int32_t values[6] = {0};
    struct tfm_batch batch;
    struct tfm_error err = {0};

    ck_assert_int_eq(tfm_nn_rows_from_mask(mask, 4, 2, 2, NULL, 0, &batch, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_batch_gather(&batch, values, 6, values, &err), TFM_STATUS_SHAPE);
    ck_assert_msg(strstr(err.text, "6 ids") && strstr(err.text, "4"), "%s", err.text);
    ck_assert_int_eq(tfm_batch_scatter(&batch, values, 4, values, 3, &err), TFM_STATUS_SHAPE);
    ck_assert_msg(strstr(err.text, "3 elements") && strstr(err.text, "4"), "%s", err.text);
    tfm_batch_deinit(&batch);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("batch");
    TCase *tcase = tests_case(suite, "batch");
    tcase_add_loop_test(tcase, masks, 0, (int)(sizeof rows / sizeof *rows));
    tcase_add_test(tcase, a_past);
    tcase_add_loop_test(tcase, refusals, 0, 11);
    tcase_add_test(tcase, other_lengths);
    return tests_run(suite);
}
