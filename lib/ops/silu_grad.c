/* SPDX-License-Identifier: MIT
 * silu_grad: dx = dy s (1 + x (1 - s)), s = sigmoid(x): the gradient of silu
 *   x [N, ...] F32, F16, BF16 or F64, dy like x -> like x
 * The factor is 0 at -inf and 1 at inf, its limits. It is that of a frozen swiglu's gate, too: with dy = dy up. */
#include <tfm/grad.h>

#include "lib/ops/elementwise.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"x", "dy"};

    return tfm__infer_elementwise(node, roles, outputs, err);
}

const struct tfm__rule tfm__rule_silu_grad = {.infer = infer};

struct tfm_tensor *tfm_op_silu_grad(struct tfm_graph *graph, struct tfm_tensor *x,
                                    struct tfm_tensor *dy)
{
    struct tfm_tensor *const inputs[] = {x, dy};
    return tfm__graph_append(graph, TFM_OP_SILU_GRAD, inputs, 2, NULL);
}
