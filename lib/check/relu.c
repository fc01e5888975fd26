/* SPDX-License-Identifier: MIT
 * relu for the checker. */
#include "lib/check/op.h"

static void build(struct tfm__sample *sample, uint32_t i)
{
    tfm__check_build_unary(sample, i, tfm_op_relu);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    tfm__check_large_unary(sample, i, tfm_op_relu);
}

const struct tfm__check_op tfm__check_op_relu = {
    .samples = TFM__CHECK_ELEMENTWISE,
    .build = build,
    .ways = tfm__check_rowwise,
    .n_ways = TFM__CHECK_ROWWISE_WAYS,
    .large = TFM__CHECK_FLOATS,
    .build_large = build_large,
    .operations = tfm__check_elements,
};
