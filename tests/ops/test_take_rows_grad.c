/* SPDX-License-Identifier: MIT
 * take_rows_grad, behind a take_rows: rows that were not taken are 0, those that were taken twice the sum. */
#include <tfm/grad.h>

#include "tests/ops/trial.h"

static struct tfm_tensor *x;

/* dy[r] = x[out[r]], so dx[n] is x[n] as often as n was taken. */
static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    const int64_t width = tfm_tensor_row_elements(x);

    for (uint32_t n = 0; n < rows->n; n++) {
        int times = 0;
        for (uint32_t r = 0; r < rows->n_out; r++)
            times += (uint32_t)rows->out[r] == n;
        for (int64_t i = 0; i < width; i++)
            want[n * width + i] = times * trial->values[x->id][n * width + i];
    }
}

/* Fault: a row that was not taken keeps what was there; of one that was taken twice only one counts; a width is
 * wrong. */
START_TEST(rows_come_back)
{
    static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_F16, TFM_DTYPE_BF16,
                                            TFM_DTYPE_F64};
    static const int64_t widths[] = {1, 7, 16, 33, 65};
    static const int32_t mixed[] = {31, 0, 7, 7, 32, 1, 31, 31}, last[] = {32};

    for (size_t w = 0; w < 5; w++) {
        struct tfm_rows rows = trial_rows(33, 0);
        struct trial t;
        trial_begin(&t, 33, "take_rows_grad %s [33, %lld]", tfm_dtype_name(dtypes[_i]),
                    (long long)widths[w]);
        t.capacity.out_rows = 8;
        x = trial_input(&t, "x", dtypes[_i], 3, widths[w], 2);
        trial_output(&t, tfm_op_take_rows_grad(t.graph, tfm_op_take_rows(t.graph, x)));
        if (trial_open(&t, w % 2 ? TFM__DRIVE_ELEMENT_OFFSETS : 0)) {
            rows.out = mixed;
            for (rows.n_out = 0; rows.n_out <= 8; rows.n_out++)
                trial_check(&t, &rows, naive);
            rows.out = last;
            rows.n_out = 1;
            trial_check(&t, &rows, naive);
        }
        trial_end(&t);
    }
}
END_TEST

/* Fault: rows of the run are given back as if they had been taken. */
START_TEST(refusals)
{
    struct trial t;

    trial_begin(&t, 4, "take_rows_grad of [N, 4]");
    x = trial_input(&t, "x", TFM_DTYPE_F32, 2, 4, 0);
    ck_assert_ptr_null(tfm_op_take_rows_grad(t.graph, x));
    trial_refused(&t, TFM_STATUS_SHAPE, "take_rows_grad|dy 'x' [N, 4] f32");
}
END_TEST

void tfm__cases_take_rows_grad(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "take_rows_grad");

    tcase_add_loop_test(tcase, rows_come_back, 0, 4);
    tcase_add_test(trial_rule_tcase(suite, "take_rows_grad rule"), refusals);
}
