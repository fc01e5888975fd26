/* SPDX-License-Identifier: MIT
 * scale for the checker. */
#include "lib/check/op.h"

static struct tfm_tensor *scale(struct tfm_graph *graph, struct tfm_tensor *x)
{
    return tfm_op_scale(graph, x, -0.3);
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    tfm__check_build_unary(sample, i, scale);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    tfm__check_large_unary(sample, i, scale);
}

const struct tfm__check_op tfm__check_op_scale = {
    .samples = TFM__CHECK_ELEMENTWISE,
    .build = build,
    .ways = tfm__check_rowwise,
    .n_ways = TFM__CHECK_ROWWISE_WAYS,
    .large = TFM__CHECK_FLOATS,
    .build_large = build_large,
    .operations = tfm__check_elements,
};
