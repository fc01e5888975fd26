/* SPDX-License-Identifier: MIT
 * rms_norm_grad for the checker. */
#include "lib/check/norm_grad.h"

static struct tfm_tensor *without_beta(struct tfm_graph *graph, struct tfm_tensor *x,
                                       struct tfm_tensor *gamma, struct tfm_tensor *dy,
                                       struct tfm_tensor *dgamma, struct tfm_tensor *dbeta,
                                       double eps)
{
    (void)dbeta;
    return tfm_op_rms_norm_grad(graph, x, gamma, dy, dgamma, eps);
}

static void build(struct tfm__sample *sample, uint32_t i)
{
    tfm__check_build_norm_grad(sample, i, without_beta, 1, 0);
}

static void build_large(struct tfm__sample *sample, uint32_t i)
{
    tfm__check_large_norm_grad(sample, i, without_beta, 0);
}

const struct tfm__check_op tfm__check_op_rms_norm_grad = {
    .samples = TFM__CHECK_NORM_GRADS,
    .build = build,
    .ways = tfm__check_sums,
    .n_ways = TFM__CHECK_SUM_WAYS,
    .large = TFM__CHECK_NORM_GRADS_LARGE,
    .build_large = build_large,
    .operations = tfm__check_norm_grad_operations,
};
