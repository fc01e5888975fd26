/* SPDX-License-Identifier: MIT
 * rms_norm for the checker. */
#include "lib/check/op.h"

enum { SHAPES = 7 };

static void make(struct tfm__sample *sample, enum tfm_dtype dtype, uint32_t rows,
                 const int64_t *shape, double eps)
{
    const enum tfm_dtype companion = dtype == TFM_DTYPE_F64 ? dtype : TFM_DTYPE_F32;

    tfm__sample_begin(sample, rows, "%s [N, %lld] eps %g", tfm_dtype_name(dtype),
                      (long long)shape[0], eps);
    sample->special = tfm__sample_input(sample, "x", dtype, 2, shape);
    tfm__sample_output(
        sample, tfm_op_rms_norm(sample->graph, sample->special,
                                tfm__sample_parameter(sample, "gamma", companion, 1, shape), eps));
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    static const struct {
        int64_t shape[1];
        double eps;
    } shapes[SHAPES] = {{{1}, 1e-5},  {{3}, 0},     {{7}, 1e-6},  {{31}, 0.5},
                        {{33}, 1e-5}, {{65}, 1e-5}, {{576}, 1e-5}};

    make(sample, tfm__check_floats[i / SHAPES], TFM__CHECK_ROWS, shapes[i % SHAPES].shape,
         shapes[i % SHAPES].eps);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    static const int64_t shape[] = {4096};
    make(sample, tfm__check_floats[i], TFM__CHECK_LARGE_ROWS, shape, 1e-5);
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
