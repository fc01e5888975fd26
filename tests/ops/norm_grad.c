/* SPDX-License-Identifier: MIT
 * The cases that rms_norm_grad and layer_norm_grad have in common. */
#include "tests/ops/norm_grad.h"

#include <math.h>
#include <stdio.h>

static const struct norm_grad *tested;
static struct tfm_tensor *x, *weight, *dy, *dgamma, *dbeta;
static const double eps = 1e-3;

/* By the Jacobian, element by element: dx_j = sum_i g_i dn_i/dx_j, dn_i/dx_j = r (delta_ij - 1/D - n_i n_j / D), without
 * the 1/D where no mean is taken away. */
static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    const size_t width = (size_t)x->shape[x->rank - 1];
    const size_t vectors = (size_t)(rows->n * tfm_tensor_row_elements(x)) / width;
    const double *from = trial->values[x->id], *above = trial->values[dy->id];
    const double *scale = trial->values[weight->id];
    const double part = tested->centered ? 1.0 / (double)width : 0;
    double *sum_gamma = want + vectors * width;
    double *sum_beta = sum_gamma + (dgamma ? width : 0);

    for (size_t j = 0; j < width; j++) {
        if (dgamma)
            sum_gamma[j] = trial->values[dgamma->id][j];
        if (dbeta)
            sum_beta[j] = trial->values[dbeta->id][j];
    }
    for (size_t v = 0; v < vectors; v++) {
        const double *a = from + v * width, *d = above + v * width;
        double mean = 0, squares = 0;
        for (size_t j = 0; j < width; j++)
            mean += a[j] * part;
        for (size_t j = 0; j < width; j++)
            squares += (a[j] - mean) * (a[j] - mean) / (double)width;
        const double r = 1 / sqrt(squares + eps);
        for (size_t j = 0; j < width; j++) {
            double sum = 0;
            for (size_t i = 0; i < width; i++)
                sum += d[i] * scale[i] * r *
                       ((i == j) - part - (a[i] - mean) * r * (a[j] - mean) * r / (double)width);
            want[v * width + j] = sum;
            if (dgamma)
                sum_gamma[j] += d[j] * (a[j] - mean) * r;
            if (dbeta)
                sum_beta[j] += d[j];
        }
    }
}

/* sums: 1 = dgamma, 2 = dbeta if the op has one */
static void check(const struct norm_grad *op, uint32_t rows, enum tfm_dtype dtype, int rank,
                  int64_t d1, int64_t d2, int sums)
{
    const int64_t width = rank == 3 ? d2 : d1;
    struct trial t;

    tested = op;
    trial_begin(&t, rows, "%s %s rank %d [N, %lld, %lld] sums %d", op->name, tfm_dtype_name(dtype),
                rank, (long long)d1, (long long)d2, sums);
    x = trial_input(&t, "x", dtype, rank, d1, d2);
    weight = trial_trainable(&t, "gamma", dtype, 1, width, 0);
    dy = trial_input(&t, "dy", dtype, rank, d1, d2);
    dgamma = sums & 1 ? trial_sum(&t, "dgamma", dtype, 1, width, 0) : NULL;
    dbeta = op->centered && sums & 2 ? trial_sum(&t, "dbeta", dtype, 1, width, 0) : NULL;
    trial_output(&t, op->op(t.graph, x, weight, dy, dgamma, dbeta, eps));
    if (sums)
        trial_check_sums(&t, naive);
    else
        trial_check_rows(&t, naive);
    trial_end(&t);
}

void norm_grad_ragged(const struct norm_grad *op, int i)
{
    const int64_t widths[NORM_GRAD_WIDTHS] = {op->least, 3, 7, 31, 33, 65, 196};
    static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_F64};

    for (int kind = 0; kind < 8; kind++)
        check(op, i < 4 ? 129 : 65, dtypes[kind / 4], 2, widths[i], 0, kind % 4);
}

void norm_grad_more_extents(const struct norm_grad *op)
{
    check(op, 33, TFM_DTYPE_F32, 3, 3, 33, 3);
}

void norm_grad_refusal(const struct norm_grad *op, int i)
{
    struct trial t;
    char words[96];

    trial_begin(&t, 4, "%s refusal %d", op->name, i);
    x = trial_input(&t, "x", TFM_DTYPE_F32, 2, 3, 0);
    dy = trial_input(&t, "dy", i == 1 ? TFM_DTYPE_F64 : TFM_DTYPE_F32, 2, i == 2 ? 5 : 3, 0);
    weight = trial_parameter(&t, "gamma", TFM_DTYPE_F32, 1, i == 3 ? 4 : 3, 0);
    dgamma = i == 4 ? trial_parameter(&t, "dgamma", TFM_DTYPE_F32, 1, 3, 0)
                    : trial_sum(&t, "dgamma", TFM_DTYPE_F32, 1, i == 0 ? 4 : 3, 0);
    ck_assert_ptr_null(op->op(t.graph, x, weight, dy, dgamma, NULL, i == 5 ? -1 : 1e-5));
    snprintf(words, sizeof words, "%s|x 'x' [N, 3] f32|gamma 'gamma'|dy 'dy'", op->name);
    trial_refused(&t,
                  i == 1   ? TFM_STATUS_DTYPE
                  : i == 5 ? TFM_STATUS_INVALID_ARGUMENT
                           : TFM_STATUS_SHAPE,
                  words);
}
