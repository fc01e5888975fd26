/* SPDX-License-Identifier: MIT
 * gelu_grad: the gradient of gelu, in the form that tanh_form says
 *   x [N, ...] F32, F16, BF16 or F64, dy like x -> like x
 *   tanh_form 0   dx = dy (Phi(x) + x phi(x)), phi(x) = exp(-x^2 / 2) / sqrt(2 pi)
 *   tanh_form 1   dx = dy (s + x s (1 - s) u'), s = sigmoid(u), u = 2 sqrt(2/pi) (x + 0.044715 x^3)
 * The factor is 0 at -inf and 1 at inf, its limits. */
#include <tfm/grad.h>

#include "lib/ops/elementwise.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"x", "dy"};

    if (node->attrs.tanh_form != 0 && node->attrs.tanh_form != 1)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "tanh_form must be 0 (erf) or 1 (tanh)");
    return tfm__infer_elementwise(node, roles, outputs, err);
}

const struct tfm__rule tfm__rule_gelu_grad = {.infer = infer};

struct tfm_tensor *tfm_op_gelu_grad(struct tfm_graph *graph, struct tfm_tensor *x,
                                    struct tfm_tensor *dy, int tanh_form)
{
    struct tfm_tensor *const inputs[] = {x, dy};
    const struct tfm_attrs attrs = {.tanh_form = tanh_form};
    return tfm__graph_append(graph, TFM_OP_GELU_GRAD, inputs, 2, &attrs);
}
