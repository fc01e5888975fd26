/* SPDX-License-Identifier: MIT
 * rms_norm_grad: dx, and what it adds to the states of gamma. */
#include <math.h>

#include <tfm/grad.h>

#include "tests/ops/trial.h"

static struct tfm_tensor *x, *weight, *dy, *dgamma;
static double eps;

/* By the Jacobian, element by element: dx_j = sum_i g_i dn_i/dx_j, dn_i/dx_j = r (delta_ij - n_i n_j / D). */
static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    const size_t width = (size_t)x->shape[x->rank - 1];
    const size_t vectors = (size_t)(rows->n * tfm_tensor_row_elements(x)) / width;
    const double *from = trial->values[x->id], *above = trial->values[dy->id];
    const double *scale = trial->values[weight->id];
    double *sum_gamma = want + vectors * width;

    for (size_t j = 0; j < width; j++) {
        if (dgamma)
            sum_gamma[j] = trial->values[dgamma->id][j];
    }
    for (size_t v = 0; v < vectors; v++) {
        const double *a = from + v * width, *d = above + v * width;
        double squares = 0;

        for (size_t j = 0; j < width; j++)
            squares += a[j] * a[j] / (double)width;
        const double r = 1 / sqrt(squares + eps);
        for (size_t j = 0; j < width; j++) {
            double sum = 0;
            for (size_t i = 0; i < width; i++)
                sum += d[i] * scale[i] * r * ((i == j) - a[i] * r * a[j] * r / (double)width);
            want[v * width + j] = sum;
            if (dgamma)
                sum_gamma[j] += d[j] * a[j] * r;
        }
    }
}

static void build(struct trial *t, uint32_t rows, enum tfm_dtype dtype, int rank, int64_t d1,
                  int64_t d2, int sums)
{
    const int64_t width = rank == 3 ? d2 : d1;

    trial_begin(t, rows, "rms_norm_grad %s rank %d [N, %lld, %lld] sums %d", tfm_dtype_name(dtype),
                rank, (long long)d1, (long long)d2, sums);
    eps = 1e-3;
    x = trial_input(t, "x", dtype, rank, d1, d2);
    weight = trial_trainable(t, "gamma", dtype, 1, width, 0);
    dy = trial_input(t, "dy", dtype, rank, d1, d2);
    dgamma = sums & 1 ? trial_sum(t, "dgamma", dtype, 1, width, 0) : NULL;

    trial_output(t, tfm_op_rms_norm_grad(t->graph, x, weight, dy, dgamma, eps));
}

/* Fault: a tail is dropped or written past its end; a state is overwritten, or needed though it is absent; the order
 * of a sum depends on how rows are shared. */
START_TEST(ragged)
{
    static const int64_t widths[] = {1, 3, 7, 31, 33, 65, 196};
    static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_F64};

    for (int sums = 0; sums < 4; sums++) {
        struct trial t;
        build(&t, _i < 4 ? 129 : 65, dtypes[sums & 1], 2, widths[_i], 0, sums);
        if (sums)
            trial_check_sums(&t, naive);
        else
            trial_check_rows(&t, naive);
        trial_end(&t);
    }
}
END_TEST

/* Fault: extents between the rows and the last are left out of the count. */
START_TEST(more_extents)
{
    struct trial t;

    build(&t, 33, TFM_DTYPE_F32, 3, 3, 33, 3);
    trial_check_sums(&t, naive);
    trial_end(&t);
}
END_TEST

/* Fault: operands that do not fit become a node; a parameter is taken for a state. */
START_TEST(refusals)
{
    struct trial t;

    trial_begin(&t, 4, "rms_norm_grad refusal %d", _i);
    x = trial_input(&t, "x", TFM_DTYPE_F32, 2, 3, 0);
    dy = trial_input(&t, "dy", _i == 1 ? TFM_DTYPE_F64 : TFM_DTYPE_F32, 2, _i == 2 ? 5 : 3, 0);
    weight = trial_parameter(&t, "gamma", TFM_DTYPE_F32, 1, _i == 3 ? 4 : 3, 0);
    dgamma = _i == 4 ? trial_parameter(&t, "dgamma", TFM_DTYPE_F32, 1, 3, 0)
                     : trial_sum(&t, "dgamma", TFM_DTYPE_F32, 1, _i == 0 ? 4 : 3, 0);
    ck_assert_ptr_null(tfm_op_rms_norm_grad(t.graph, x, weight, dy, dgamma, _i == 5 ? -1 : 1e-5));
    trial_refused(&t,
                  _i == 1   ? TFM_STATUS_DTYPE
                  : _i == 5 ? TFM_STATUS_INVALID_ARGUMENT
                            : TFM_STATUS_SHAPE,
                  "rms_norm_grad|x 'x' [N, 3] f32|gamma 'gamma'|dy 'dy'");
}
END_TEST

void tfm__cases_rms_norm_grad(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "rms_norm_grad");

    tcase_add_loop_test(tcase, ragged, 0, 7);
    tcase_add_test(tcase, more_extents);
    tcase_add_loop_test(trial_rule_tcase(suite, "rms_norm_grad rule"), refusals, 0, 6);
}
