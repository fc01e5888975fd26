/* SPDX-License-Identifier: MIT
 * rms_norm_grad for the checker: with and without the sums, which hold something already. */
#include <tfm/grad.h>

#include "lib/check/op.h"

enum { SHAPES = 7 };

static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_F64};

static void make(struct tfm__sample *sample, enum tfm_dtype dtype, uint32_t rows, int rank,
                 const int64_t *shape, double eps, int sums)
{
    const int64_t *width = &shape[rank - 2];

    tfm__sample_begin(sample, rows, "%s rank %d [N, ..., %lld] eps %g sums %d",
                      tfm_dtype_name(dtype), rank, (long long)*width, eps, sums);
    struct tfm_tensor *x = tfm__sample_input(sample, "x", dtype, rank, shape);
    struct tfm_tensor *gamma = tfm__sample_trainable(sample, "gamma", dtype, 1, width);
    struct tfm_tensor *dy = tfm__sample_input(sample, "dy", dtype, rank, shape);
    struct tfm_tensor *dgamma =
        sums & 1 ? tfm__sample_sum(sample, "dgamma", dtype, 1, width) : NULL;

    tfm__sample_output(sample, tfm_op_rms_norm_grad(sample->graph, x, gamma, dy, dgamma, eps));
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    static const struct {
        int rank;
        int64_t shape[2];
        double eps;
        int sums;
    } shapes[SHAPES] = {
        {2, {1, 0}, 1e-2, 3},  {2, {7, 0}, 1e-5, 1},   {2, {31, 0}, 0.5, 2},  {2, {33, 0}, 1e-5, 3},
        {2, {65, 0}, 1e-5, 0}, {2, {576, 0}, 1e-5, 3}, {3, {5, 33}, 1e-5, 3},
    };

    make(sample, dtypes[i / SHAPES], TFM__CHECK_ROWS, shapes[i % SHAPES].rank,
         shapes[i % SHAPES].shape, shapes[i % SHAPES].eps, shapes[i % SHAPES].sums);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    static const int64_t shape[] = {4096};
    make(sample, dtypes[i], 256, 2, shape, 1e-5, 3);
}

static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    return 12 * tfm__check_elements(sample, rows);
}

const struct tfm__check_op tfm__check_op_rms_norm_grad = {
    .samples = 2 * SHAPES,
    .build = build,
    .ways = tfm__check_sums,
    .n_ways = TFM__CHECK_SUM_WAYS,
    .large = 2,
    .build_large = build_large,
    .operations = operations,
};
