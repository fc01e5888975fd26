/* SPDX-License-Identifier: MIT
 * swiglu: y = silu(gate) * up, silu(g) = g / (1 + exp(-g)) (Shazeer, arXiv:2002.05202)
 *   gate [N, F] F32, F16, BF16 or F64, up like gate -> like gate
 * silu(-inf) is 0, its limit, not the NaN of -inf / inf.
 * Gradient: with s = sigmoid(gate): dgate = dy up s (1 + gate (1 - s)), dup = dy gate s. */
#include "lib/ops/refuse.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"gate", "up"};
    const struct tfm_tensor *gate = node->inputs[0], *up = node->inputs[1];

    if (!tfm__is_class(gate, TFM_DTYPE_FLOAT) || gate->dtype != up->dtype)
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles,
                              "gate and up must be of one float dtype");
    if (!tfm__is_activation(gate) || gate->rank != 2 || !tfm__same_shape(gate, up))
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "gate and up must be [N, F] of one shape");
    tfm__shape_like(&outputs[0], gate, gate->dtype);
    return TFM_STATUS_OK;
}

const struct tfm__rule tfm__rule_swiglu = {.infer = infer};

struct tfm_tensor *tfm_op_swiglu(struct tfm_graph *graph, struct tfm_tensor *gate,
                                 struct tfm_tensor *up)
{
    struct tfm_tensor *const inputs[] = {gate, up};
    return tfm__graph_append(graph, TFM_OP_SWIGLU, inputs, 2, NULL);
}
