/* SPDX-License-Identifier: MIT
 * layer_norm_grad: the gradient of layer_norm: with m = mean(x), r = 1 / sqrt(mean((x - m)^2) + eps), n = (x - m) r and
 * g = dy gamma
 *   dx = r (g - mean(g) - n mean(g n)), over the rows dgamma += dy n, dbeta += dy
 *   x [N, ..., D] F32, gamma [D] F32, dy like x, states dgamma, dbeta [D] F32 or absent -> like x; or
 *   everything F64 */
#include <tfm/grad.h>

#include "lib/ops/norm_grad.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"x", "gamma", "dy", "dgamma", "dbeta"};

    return tfm__infer_norm_grad(node, roles, outputs, err);
}

const struct tfm__rule tfm__rule_layer_norm_grad = {.infer = infer};

struct tfm_tensor *tfm_op_layer_norm_grad(struct tfm_graph *graph, struct tfm_tensor *x,
                                          struct tfm_tensor *gamma, struct tfm_tensor *dy,
                                          struct tfm_tensor *dgamma, struct tfm_tensor *dbeta,
                                          double eps)
{
    struct tfm_tensor *const inputs[] = {x, gamma, dy, dgamma, dbeta};
    const struct tfm_attrs attrs = {.eps = eps};
    return tfm__graph_append(graph, TFM_OP_LAYER_NORM_GRAD, inputs, 5, &attrs);
}
