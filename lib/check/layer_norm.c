/* SPDX-License-Identifier: MIT
 * layer_norm for the checker: with and without beta, rows of more than two extents. */
#include "lib/check/op.h"

enum { SHAPES = 7 };

struct shape {
    int rank;
    int64_t shape[2];
    double eps;
    int has_beta;
};

static void make(struct tfm__sample *sample, enum tfm_dtype dtype, uint32_t rows,
                 const struct shape *s)
{
    const enum tfm_dtype companion = dtype == TFM_DTYPE_F64 ? dtype : TFM_DTYPE_F32;
    const int64_t *width = &s->shape[s->rank - 2];

    tfm__sample_begin(sample, rows, "%s rank %d [N, ..., %lld] eps %g%s", tfm_dtype_name(dtype),
                      s->rank, (long long)*width, s->eps, s->has_beta ? " with beta" : "");
    sample->special = tfm__sample_input(sample, "x", dtype, s->rank, s->shape);
    struct tfm_tensor *gamma = tfm__sample_parameter(sample, "gamma", companion, 1, width);
    struct tfm_tensor *beta =
        s->has_beta ? tfm__sample_parameter(sample, "beta", companion, 1, width) : NULL;
    tfm__sample_output(sample,
                       tfm_op_layer_norm(sample->graph, sample->special, gamma, beta, s->eps));
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    static const struct shape shapes[SHAPES] = {
        {2, {1, 0}, 1e-5, 1},  {2, {3, 0}, 1e-5, 0},  {2, {7, 0}, 1e-6, 1},   {3, {5, 31}, 0.5, 1},
        {2, {33, 0}, 1e-5, 1}, {2, {65, 0}, 1e-5, 0}, {2, {576, 0}, 1e-5, 1},
    };
    make(sample, tfm__check_floats[i / SHAPES], TFM__CHECK_ROWS, &shapes[i % SHAPES]);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    static const struct shape large = {2, {4096, 0}, 1e-5, 1};
    make(sample, tfm__check_floats[i], TFM__CHECK_LARGE_ROWS, &large);
}

/* Two sums, a difference, a square, two products and a sum. */
static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    return 7 * tfm__check_elements(sample, rows);
}

const struct tfm__check_op tfm__check_op_layer_norm = {
    .samples = TFM__CHECK_FLOATS * SHAPES,
    .build = build,
    .ways = tfm__check_rowwise,
    .n_ways = TFM__CHECK_ROWWISE_WAYS,
    .large = TFM__CHECK_FLOATS,
    .build_large = build_large,
    .operations = operations,
};
