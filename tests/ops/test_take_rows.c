/* SPDX-License-Identifier: MIT
 * take_rows: every dtype, bit for bit; none, some, all, repeated and unordered rows. */
#include <string.h>

#include "tests/ops/trial.h"

static struct tfm_tensor *x;

static void build(struct trial *t, uint32_t rows, uint32_t out_rows, enum tfm_dtype dtype, int rank,
                  int64_t width)
{
    trial_begin(t, rows, "take_rows %s [%u, %lld] -> %u rows", tfm_dtype_name(dtype), rows,
                (long long)width, out_rows);
    t->capacity.out_rows = out_rows;
    x = trial_input(t, "x", dtype, rank, width, 3);
    trial_output(t, tfm_op_take_rows(t->graph, x));
    /* any bits at all: NaN patterns and block scales must survive */
    unsigned char *bytes = t->data[x->id];
    for (size_t i = 0; i < tfm__drive_bytes(x, rows); i++)
        bytes[i] = (unsigned char)(256 * trial_random(i));
}

static void check(struct trial *t, unsigned flags, const int32_t *out, uint32_t n_out)
{
    const size_t bytes = tfm__drive_bytes(x, 1);
    struct tfm_rows rows = trial_rows(t->capacity.rows, 0);

    rows.out = out;
    rows.n_out = n_out;
    if (!trial_open(t, flags))
        return;
    trial_run(t, &rows, TFM_STATUS_OK);
    for (uint32_t r = 0; r < n_out; r++)
        ck_assert_msg(memcmp((unsigned char *)t->data[t->output->id] + r * bytes,
                             (unsigned char *)t->data[x->id] + (uint32_t)out[r] * bytes,
                             bytes) == 0,
                      "%s: row %u is not row %d", t->what, r, out[r]);
    trial_shut(t);
}

/* Fault: rows are read or written at a wrong stride, order or count, or pass through arithmetic. */
START_TEST(dtypes)
{
    static const int64_t widths[] = {1, 3, 7, 31, 33, 65, 576, 32, 96};
    static const int32_t last[] = {32}, first[] = {0}, mixed[] = {31, 0, 7, 7, 32, 1, 31};
    const enum tfm_dtype dtype = (enum tfm_dtype)_i;

    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        struct trial t;
        if (widths[w] % tfm_dtype_info(dtype)->block != 0)
            continue;
        build(&t, 33, 7, dtype, 2, widths[w]);
        check(&t, 0, mixed, 7);
        check(&t, TFM__DRIVE_ELEMENT_OFFSETS, mixed, 7);
        check(&t, 0, last, 1);
        check(&t, 0, first, 1);
        check(&t, 0, NULL, 0);
        trial_end(&t);
    }
}
END_TEST

/* Fault: the number of rows is taken from the input, or extents beyond the second are left out. */
START_TEST(all_rows_and_ranks)
{
    int32_t all[65];
    struct trial t;

    for (int32_t i = 0; i < 65; i++)
        all[i] = i;
    build(&t, 65, 65, TFM_DTYPE_F32, 1, 0);
    check(&t, 0, all, 65);
    trial_end(&t);
    build(&t, 65, 65, TFM_DTYPE_F32, 3, 7);
    check(&t, 0, all, 65);
    check(&t, 0, all, 64);
    trial_end(&t);
}
END_TEST

/* Fault: a row that is not there is read. The core looks first; the reference looks again. */
START_TEST(row_out_of_range)
{
    static const int32_t bad[] = {-1, 3};
    struct tfm_rows rows = trial_rows(3, 0);
    struct trial t;

    if (!trial_is_reference())
        return;
    build(&t, 5, 1, TFM_DTYPE_F32, 2, 4);
    rows.out = &bad[_i];
    rows.n_out = 1;
    ck_assert(trial_open(&t, 0));
    trial_run(&t, &rows, TFM_STATUS_OUT_OF_RANGE);
    trial_end(&t);
}
END_TEST

/* Fault: rows are taken of something that has none. */
START_TEST(refusals)
{
    struct trial t;

    trial_begin(&t, 4, "take_rows of a parameter");
    x = trial_parameter(&t, "x", TFM_DTYPE_F32, 2, 4, 4);
    ck_assert_ptr_null(tfm_op_take_rows(t.graph, x));
    trial_refused(&t, TFM_STATUS_SHAPE, "take_rows|'x' [4, 4] f32");
    build(&t, 4, 4, TFM_DTYPE_F32, 2, 4);
    ck_assert_ptr_null(tfm_op_take_rows(t.graph, t.output));
    trial_refused(&t, TFM_STATUS_SHAPE, "take_rows|[R, 4] f32");
}
END_TEST

void tfm__cases_take_rows(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "take_rows");

    tcase_add_loop_test(tcase, dtypes, 0, TFM_DTYPE_COUNT);
    tcase_add_test(tcase, all_rows_and_ranks);
    tcase_add_loop_test(tcase, row_out_of_range, 0, 2);
    tcase_add_test(trial_rule_tcase(suite, "take_rows rule"), refusals);
}
