/* SPDX-License-Identifier: MIT
 * Cases of sum_squares. */
#include <math.h>

#include <tfm/grad.h>

#include "tests/ops/trial.h"

static struct tfm_tensor *x;

/* From the last element to the first, so that another order shows what the bound is worth. */
static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    double sum = 0;

    for (size_t i = trial_count(trial, x); i-- > 0;)
        sum += trial->values[x->id][i] * trial->values[x->id][i];
    want[0] = rows->n ? sum : NAN;
}

static void build(struct trial *t, enum tfm_dtype dtype, int rank, int64_t d0, int64_t d1)
{
    trial_begin(t, 3, "sum_squares %s rank %d [%lld, %lld]", tfm_dtype_name(dtype), rank,
                (long long)d0, (long long)d1);
    x = trial_sum(t, "x", dtype, rank, d0, d1);
    trial_output(t, tfm_op_sum_squares(t->graph, x));
    t->n_sums = 0; /* it stays as it is, to the bit */
}

/* Fault: the last elements of a vector or of a block are left out or counted twice; the sum of the blocks' sums
 * leaves some out; the state is changed; a run without rows writes. */
START_TEST(sums)
{
    static const int64_t sizes[][2] = {{1, 0},    {3, 0},    {16, 0},   {31, 0},   {33, 7},
                                       {4095, 0}, {4096, 0}, {4097, 0}, {65, 577}, {16, 4111}};
    static const unsigned ways[] = {0, TFM__DRIVE_ELEMENT_OFFSETS, TFM__DRIVE_WHOLE};
    static const uint32_t counts[] = {1, 0, 3, 1};
    const enum tfm_dtype dtype = _i % 2 ? TFM_DTYPE_F64 : TFM_DTYPE_F32;
    const int64_t *size = sizes[_i / 2];
    struct trial t;

    build(&t, dtype, size[1] ? 2 : 1, size[0], size[1]);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        if (!trial_open(&t, ways[w]))
            break;
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            const struct tfm_rows rows = trial_rows(counts[c], 0);
            trial_check(&t, &rows, naive);
        }
        trial_shut(&t);
    }
    trial_end(&t);
}
END_TEST

/* Fault: a NaN or an infinity anywhere goes under in the sum, so that a broken gradient looks sound. */
START_TEST(what_is_not_finite_shows)
{
    static const size_t places[] = {0, 17, 4096, 8190};
    static const double values[] = {NAN, INFINITY, -INFINITY};

    for (size_t i = 0; i < 12; i++) {
        const struct tfm_rows rows = trial_rows(1, 0);
        double sum;
        struct trial t;
        build(&t, TFM_DTYPE_F32, 1, 8191, 0);
        trial_set(&t, x, places[i / 3], 1, &values[i % 3]);
        ck_assert(trial_open(&t, 0));
        trial_run(&t, &rows, TFM_STATUS_OK);
        trial_get(&t, t.output, 0, 1, &sum);
        ck_assert_msg(!isfinite(sum), "%zu: %g", places[i / 3], sum);
        trial_end(&t);
    }
}
END_TEST

/* Fault: an activation or an integer is taken for a state. */
START_TEST(refusals)
{
    struct trial t;

    trial_begin(&t, 4, "sum_squares refusal %d", _i);
    x = _i == 0   ? trial_input(&t, "x", TFM_DTYPE_F32, 2, 3, 0)
        : _i == 1 ? trial_parameter(&t, "x", TFM_DTYPE_F32, 2, 3, 4)
                  : trial_sum(&t, "x", TFM_DTYPE_BF16, 2, 3, 4);
    ck_assert_ptr_null(tfm_op_sum_squares(t.graph, x));
    trial_refused(&t, TFM_STATUS_DTYPE, "sum_squares|x must be a state|x 'x' [");
}
END_TEST

void tfm__cases_sum_squares(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "sum_squares");

    tcase_add_loop_test(tcase, sums, 0, 20);
    tcase_add_test(tcase, what_is_not_finite_shows);
    tcase_add_loop_test(trial_rule_tcase(suite, "sum_squares rule"), refusals, 0, 3);
}
