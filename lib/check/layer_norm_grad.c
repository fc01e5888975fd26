/* SPDX-License-Identifier: MIT
 * layer_norm_grad for the checker. */
#include "lib/check/norm_grad.h"

/* A vector of one has no variance: its gradient is what rounding leaves of 0. */
static void build(struct tfm__sample *sample, uint32_t i)
{
    tfm__check_build_norm_grad(sample, i, tfm_op_layer_norm_grad, 2, 1);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    tfm__check_large_norm_grad(sample, i, tfm_op_layer_norm_grad, 1);
}

const struct tfm__check_op tfm__check_op_layer_norm_grad = {
    .samples = TFM__CHECK_NORM_GRADS,
    .build = build,
    .ways = tfm__check_sums,
    .n_ways = TFM__CHECK_SUM_WAYS,
    .large = TFM__CHECK_NORM_GRADS_LARGE,
    .build_large = build_large,
    .operations = tfm__check_norm_grad_operations,
};
