/* SPDX-License-Identifier: MIT
 * relu_grad: dx = dy where x > 0, else 0: the gradient of relu (0 at 0, as PyTorch takes it)
 *   x [N, ...] F32, F16, BF16 or F64, dy like x -> like x, exactly; NaN of x lets dy through, NaN of dy stays
 * where x > 0. */
#include <tfm/grad.h>

#include "lib/ops/elementwise.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"x", "dy"};

    return tfm__infer_elementwise(node, roles, outputs, err);
}

const struct tfm__rule tfm__rule_relu_grad = {.infer = infer};

struct tfm_tensor *tfm_op_relu_grad(struct tfm_graph *graph, struct tfm_tensor *x,
                                    struct tfm_tensor *dy)
{
    struct tfm_tensor *const inputs[] = {x, dy};
    return tfm__graph_append(graph, TFM_OP_RELU_GRAD, inputs, 2, NULL);
}
