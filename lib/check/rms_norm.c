/* SPDX-License-Identifier: MIT
 * rms_norm for the checker. */
#include "lib/check/op.h"

enum { SHAPES = 8 };

static void make(struct tfm__sample *sample, enum tfm_dtype dtype, uint32_t rows, int rank,
                 const int64_t *shape, double eps)
{
    const int64_t *width = &shape[rank - 2];
    const enum tfm_dtype companion = dtype == TFM_DTYPE_F64 ? dtype : TFM_DTYPE_F32;

    tfm__sample_begin(sample, rows, "%s rank %d [N, ..., %lld] eps %g", tfm_dtype_name(dtype), rank,
                      (long long)*width, eps);
    sample->special = tfm__sample_input(sample, "x", dtype, rank, shape);
    tfm__sample_output(
        sample, tfm_op_rms_norm(sample->graph, sample->special,
                                tfm__sample_parameter(sample, "gamma", companion, 1, width), eps));
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    static const struct {
        int rank;
        int64_t shape[2];
        double eps;
    } shapes[SHAPES] = {
        {2, {1, 0}, 1e-5},  {2, {3, 0}, 0},     {2, {7, 0}, 1e-6},   {2, {31, 0}, 0.5},
        {2, {33, 0}, 1e-5}, {2, {65, 0}, 1e-5}, {2, {576, 0}, 1e-5}, {3, {5, 33}, 1e-5},
    };

    make(sample, tfm__check_floats[i / SHAPES], TFM__CHECK_ROWS, shapes[i % SHAPES].rank,
         shapes[i % SHAPES].shape, shapes[i % SHAPES].eps);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    static const int64_t shape[] = {4096};
    make(sample, tfm__check_floats[i], TFM__CHECK_LARGE_ROWS, 2, shape, 1e-5);
}

/* A square and a sum, two products. */
static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    return 4 * tfm__check_elements(sample, rows);
}

const struct tfm__check_op tfm__check_op_rms_norm = {
    .samples = TFM__CHECK_FLOATS * SHAPES,
    .build = build,
    .ways = tfm__check_rowwise,
    .n_ways = TFM__CHECK_ROWWISE_WAYS,
    .large = TFM__CHECK_FLOATS,
    .build_large = build_large,
    .operations = operations,
};
