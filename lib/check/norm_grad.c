/* SPDX-License-Identifier: MIT
 * What the nodes of rms_norm_grad and layer_norm_grad have in common. */
#include "lib/check/norm_grad.h"

enum { SHAPES = 7 };

static const enum tfm_dtype dtypes[TFM__CHECK_NORM_GRADS / SHAPES] = {TFM_DTYPE_F32, TFM_DTYPE_F64};

struct kind {
    int rank;
    int64_t shape[2];
    double eps;
    int sums; /* 1 = dgamma, 2 = dbeta */
};

static void make(struct tfm__sample *sample, enum tfm_dtype dtype, uint32_t rows,
                 const struct kind *kind, tfm__check_norm_grad *op, int has_beta)
{
    const int64_t *width = &kind->shape[kind->rank - 2];

    tfm__sample_begin(sample, rows, "%s rank %d [N, ..., %lld] eps %g sums %d",
                      tfm_dtype_name(dtype), kind->rank, (long long)*width, kind->eps, kind->sums);
    struct tfm_tensor *x = tfm__sample_input(sample, "x", dtype, kind->rank, kind->shape);
    struct tfm_tensor *gamma = tfm__sample_trainable(sample, "gamma", dtype, 1, width);
    struct tfm_tensor *dy = tfm__sample_input(sample, "dy", dtype, kind->rank, kind->shape);
    struct tfm_tensor *dgamma =
        kind->sums & 1 ? tfm__sample_sum(sample, "dgamma", dtype, 1, width) : NULL;
    struct tfm_tensor *dbeta =
        has_beta && kind->sums & 2 ? tfm__sample_sum(sample, "dbeta", dtype, 1, width) : NULL;
    tfm__sample_output(sample, op(sample->graph, x, gamma, dy, dgamma, dbeta, kind->eps));
}

void tfm__check_build_norm_grad(struct tfm__sample *sample, uint32_t i, tfm__check_norm_grad *op,
                                int64_t least, int has_beta)
{
    const struct kind kinds[SHAPES] = {
        {2, {least, 0}, 1e-2, 3}, {2, {7, 0}, 1e-5, 1},  {2, {31, 0}, 0.5, 2},
        {2, {33, 0}, 1e-5, 3},    {2, {65, 0}, 1e-5, 0}, {2, {576, 0}, 1e-5, 3},
        {3, {5, 33}, 1e-5, 3},
    };

    make(sample, dtypes[i / SHAPES], TFM__CHECK_ROWS, &kinds[i % SHAPES], op, has_beta);
}

void tfm__check_large_norm_grad(struct tfm__sample *sample, uint32_t i, tfm__check_norm_grad *op,
                                int has_beta)
{
    static const struct kind kind = {2, {4096, 0}, 1e-5, 3};

    make(sample, dtypes[i], 256, &kind, op, has_beta);
}

double tfm__check_norm_grad_operations(const struct tfm__sample *sample,
                                       const struct tfm_rows *rows)
{
    return 12 * tfm__check_elements(sample, rows);
}
