/* SPDX-License-Identifier: MIT
 * Faults caught: rows that would let a kernel write past the cache or read a row that is not there. One
 * line a fault; the base is two sequences of 3 + 2 rows in slots 0 and 1 of 2 slots x 8 cells. */
#include <check.h>
#include <string.h>

#include "lib/core/rows.h"
#include "tests/core/runner.h"

static const struct {
    const char *what;
    enum tfm_status status;
    uint32_t n, n_seq, n_out;
    int32_t slot[2], start[2], past[2], out[2];
} table[] = {
    {"base", TFM_STATUS_OK, 5, 2, 2, {0, 1}, {0, 3}, {0, 6}, {2, 4}},
    {"slots swapped", TFM_STATUS_OK, 5, 2, 1, {1, 0}, {0, 3}, {0, 6}, {0, 0}},
    {"empty first sequence", TFM_STATUS_OK, 5, 2, 0, {0, 1}, {0, 0}, {8, 3}, {0, 0}},
    {"nothing at all", TFM_STATUS_OK, 0, 0, 0, {0, 0}, {0, 0}, {0, 0}, {0, 0}},
    {"cache exactly full", TFM_STATUS_OK, 5, 2, 0, {0, 1}, {0, 3}, {5, 6}, {0, 0}},
    {"one past the cache", TFM_STATUS_CONTEXT_FULL, 5, 2, 0, {0, 1}, {0, 3}, {6, 6}, {0, 0}},
    {"second past the cache", TFM_STATUS_CONTEXT_FULL, 5, 2, 0, {0, 1}, {0, 3}, {0, 7}, {0, 0}},
    {"largest past", TFM_STATUS_CONTEXT_FULL, 5, 2, 0, {0, 1}, {0, 3}, {0, INT32_MAX}, {0, 0}},
    {"negative past", TFM_STATUS_OUT_OF_RANGE, 5, 2, 0, {0, 1}, {0, 3}, {-1, 0}, {0, 0}},
    {"slot too large", TFM_STATUS_OUT_OF_RANGE, 5, 2, 0, {0, 2}, {0, 3}, {0, 0}, {0, 0}},
    {"negative slot", TFM_STATUS_OUT_OF_RANGE, 5, 2, 0, {-1, 1}, {0, 3}, {0, 0}, {0, 0}},
    {"slot twice", TFM_STATUS_INVALID_ARGUMENT, 5, 2, 0, {1, 1}, {0, 3}, {0, 0}, {0, 0}},
    {"does not start at 0", TFM_STATUS_INVALID_ARGUMENT, 5, 2, 0, {0, 1}, {1, 3}, {0, 0}, {0, 0}},
    {"starts descend", TFM_STATUS_INVALID_ARGUMENT, 5, 2, 0, {0, 1}, {0, -2}, {0, 0}, {0, 0}},
    {"starts past n", TFM_STATUS_INVALID_ARGUMENT, 5, 2, 0, {0, 1}, {0, 6}, {0, 0}, {0, 0}},
    {"out past n", TFM_STATUS_OUT_OF_RANGE, 5, 2, 2, {0, 1}, {0, 3}, {0, 0}, {0, 5}},
    {"negative out", TFM_STATUS_OUT_OF_RANGE, 5, 2, 2, {0, 1}, {0, 3}, {0, 0}, {-1, 0}},
    {"too many rows", TFM_STATUS_INVALID_ARGUMENT, 7, 2, 0, {0, 1}, {0, 3}, {0, 0}, {0, 0}},
    {"rows of nobody", TFM_STATUS_INVALID_ARGUMENT, 5, 0, 0, {0, 0}, {0, 0}, {0, 0}, {0, 0}},
};

START_TEST(rows)
{
    const struct tfm_capacity capacity = {.rows = 6, .sequences = 2, .out_rows = 2};
    const struct tfm_rows rows = {table[_i].n,     table[_i].n_seq, table[_i].n_out, table[_i].slot,
                                  table[_i].start, table[_i].past,  table[_i].out};
    const struct tfm__rows_needs needs = {.slots = 2, .cells = 8, .sequences = 1};
    struct tfm_error err = {0};
    const enum tfm_status status = tfm__rows_check(&rows, &capacity, &needs, &err);
    ck_assert_msg(status == table[_i].status, "%s: %s: %s", table[_i].what, tfm_status_name(status),
                  err.text);
    ck_assert_int_eq(status != TFM_STATUS_OK, err.text[0] != '\0');
}
END_TEST

START_TEST(missing_arrays)
{
    const struct tfm_capacity capacity = {.rows = 6, .sequences = 2, .out_rows = 2};
    const struct tfm__rows_needs needs = {.slots = 2, .cells = 8, .sequences = 1};
    const struct tfm__rows_needs nothing = {0};
    const int32_t zero = 0;
    const struct tfm_rows no_slot = {.n = 1, .n_seq = 1, .start = &zero, .past = &zero};
    const struct tfm_rows no_out = {.n = 1, .n_out = 1};
    ck_assert_int_eq(tfm__rows_check(&no_slot, &capacity, &needs, NULL),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_int_eq(tfm__rows_check(&no_out, &capacity, &nothing, NULL),
                     TFM_STATUS_INVALID_ARGUMENT);
}
END_TEST

/* Faults caught: without a cache a past is taken for granted, sequences are not looked at, or a slot or
 * the number of cells is asked for although there are none. */
static const struct {
    const char *what;
    struct tfm__rows_needs needs;
    enum tfm_status status;
    uint32_t n_seq;
    int32_t slot[2], start[2], past[2];
} cacheless[] = {
    {"rows alone", {0, 0, 0, 0}, TFM_STATUS_OK, 0, {0, 0}, {0, 0}, {0, 0}},
    {"rows alone, whatever they say", {0, 0, 0, 0}, TFM_STATUS_OK, 2, {9, 9}, {3, 1}, {-1, 7}},
    {"no past", {0, 0, 1, 1}, TFM_STATUS_OK, 2, {-5, -5}, {0, 3}, {0, 0}},
    {"a past", {0, 0, 1, 1}, TFM_STATUS_INVALID_ARGUMENT, 2, {0, 1}, {0, 3}, {0, 1}},
    {"negative past", {0, 0, 1, 1}, TFM_STATUS_OUT_OF_RANGE, 2, {0, 1}, {0, 3}, {0, -1}},
    {"starts descend", {0, 0, 1, 1}, TFM_STATUS_INVALID_ARGUMENT, 2, {0, 1}, {0, -2}, {0, 0}},
    {"rows of nobody", {0, 0, 1, 1}, TFM_STATUS_INVALID_ARGUMENT, 0, {0, 0}, {0, 0}, {0, 0}},
    {"one with, one without", {2, 8, 1, 1}, TFM_STATUS_OK, 2, {0, 1}, {0, 3}, {0, 0}},
    {"past beside", {2, 8, 1, 1}, TFM_STATUS_INVALID_ARGUMENT, 2, {0, 1}, {0, 3}, {1, 0}},
};

START_TEST(without_caches)
{
    const struct tfm_capacity capacity = {.rows = 6, .sequences = 2};
    const struct tfm_rows rows = {
        5,   cacheless[_i].n_seq, 0, cacheless[_i].slot, cacheless[_i].start, cacheless[_i].past,
        NULL};
    struct tfm_error err = {0};
    const enum tfm_status status = tfm__rows_check(&rows, &capacity, &cacheless[_i].needs, &err);
    ck_assert_msg(status == cacheless[_i].status, "%s: %s: %s", cacheless[_i].what,
                  tfm_status_name(status), err.text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rows");
    TCase *tcase = tests_case(suite, "rows");
    tcase_add_loop_test(tcase, rows, 0, (int)(sizeof table / sizeof *table));
    tcase_add_test(tcase, missing_arrays);
    tcase_add_loop_test(tcase, without_caches, 0, (int)(sizeof cacheless / sizeof *cacheless));
    return tests_run(suite);
}
