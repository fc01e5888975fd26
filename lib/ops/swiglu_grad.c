/* SPDX-License-Identifier: MIT
 * swiglu_grad: with s = sigmoid(gate): dgate = dy up s (1 + gate (1 - s)), dup = dy gate s: the gradients of swiglu
 *   gate [N, ...] F32, F16, BF16 or F64, up and dy like gate -> dgate, dup like gate
 * The factors are those of silu_grad and silu, with their limits: 0 and 0 at -inf, 1 and inf at inf. */
#include <tfm/grad.h>

#include "lib/ops/elementwise.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"gate", "up", "dy"};
    const enum tfm_status status = tfm__infer_elementwise(node, roles, outputs, err);

    if (status == TFM_STATUS_OK)
        tfm__shape_like(&outputs[1], node->inputs[0], node->inputs[0]->dtype);
    return status;
}

const struct tfm__rule tfm__rule_swiglu_grad = {.infer = infer};

struct tfm_tensor *tfm_op_swiglu_grad(struct tfm_graph *graph, struct tfm_tensor *gate,
                                      struct tfm_tensor *up, struct tfm_tensor *dy,
                                      struct tfm_tensor **dup)
{
    struct tfm_tensor *const inputs[] = {gate, up, dy};
    struct tfm_tensor *outputs[TFM_MAX_OUTPUTS] = {NULL};

    const int made = tfm__graph_append_node(graph, TFM_OP_SWIGLU_GRAD, inputs, 3, NULL, outputs);
    *dup = made ? outputs[1] : NULL;
    return made ? outputs[0] : NULL;
}
