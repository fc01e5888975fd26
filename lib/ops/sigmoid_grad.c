/* SPDX-License-Identifier: MIT
 * sigmoid_grad: dx = dy s (1 - s), s = sigmoid(x): the gradient of a sigmoid, of which glu makes that of its gate
 *   x [N, ...] F32, F16, BF16 or F64, dy like x -> like x
 * 1 - s is computed as the sigmoid of -x, so that it keeps its digits where s is nearly 1. */
#include <tfm/grad.h>

#include "lib/ops/elementwise.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"x", "dy"};

    return tfm__infer_elementwise(node, roles, outputs, err);
}

const struct tfm__rule tfm__rule_sigmoid_grad = {.infer = infer};

struct tfm_tensor *tfm_op_sigmoid_grad(struct tfm_graph *graph, struct tfm_tensor *x,
                                       struct tfm_tensor *dy)
{
    struct tfm_tensor *const inputs[] = {x, dy};
    return tfm__graph_append(graph, TFM_OP_SIGMOID_GRAD, inputs, 2, NULL);
}
