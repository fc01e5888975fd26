/* SPDX-License-Identifier: MIT
 * rms_norm_grad: the gradient of rms_norm: with r = 1 / sqrt(mean(x^2) + eps), n = x r and g = dy gamma
 *   dx = r (g - n mean(g n)), dgamma += sum over the rows of dy n
 *   x [N, ..., D] F32, gamma [D] F32, dy like x, state dgamma [D] F32 or absent -> like x; or everything F64 */
#include <tfm/grad.h>

#include "lib/ops/norm_grad.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"x", "gamma", "dy", "dgamma"};

    return tfm__infer_norm_grad(node, roles, outputs, err);
}

const struct tfm__rule tfm__rule_rms_norm_grad = {.infer = infer};

struct tfm_tensor *tfm_op_rms_norm_grad(struct tfm_graph *graph, struct tfm_tensor *x,
                                        struct tfm_tensor *gamma, struct tfm_tensor *dy,
                                        struct tfm_tensor *dgamma, double eps)
{
    struct tfm_tensor *const inputs[] = {x, gamma, dy, dgamma};
    const struct tfm_attrs attrs = {.eps = eps};
    return tfm__graph_append(graph, TFM_OP_RMS_NORM_GRAD, inputs, 4, &attrs);
}
