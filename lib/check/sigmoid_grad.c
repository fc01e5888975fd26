/* SPDX-License-Identifier: MIT
 * sigmoid_grad for the checker. */
#include <tfm/grad.h>

#include "lib/check/op.h"

static double operations(const struct tfm__sample *sample, const struct tfm_rows *rows)
{
    return 8 * tfm__check_elements(sample, rows);
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    tfm__check_build_binary(sample, i, tfm_op_sigmoid_grad);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    tfm__check_large_binary(sample, i, tfm_op_sigmoid_grad);
}

const struct tfm__check_op tfm__check_op_sigmoid_grad = {
    .samples = TFM__CHECK_ELEMENTWISE,
    .build = build,
    .ways = tfm__check_rowwise,
    .n_ways = TFM__CHECK_ROWWISE_WAYS,
    .large = TFM__CHECK_FLOATS,
    .build_large = build_large,
    .operations = operations,
};
