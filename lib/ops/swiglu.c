/* SPDX-License-Identifier: MIT
 * swiglu: y = silu(gate) * up, silu(g) = g / (1 + exp(-g)) (Shazeer, arXiv:2002.05202)
 *   gate [N, ...] F32, F16, BF16 or F64, up like gate -> like gate
 * silu(-inf) is 0, its limit, not the NaN of -inf / inf.
 * Gradient: with s = sigmoid(gate): dgate = dy up s (1 + gate (1 - s)), dup = dy gate s. */
#include "lib/ops/elementwise.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"gate", "up"};

    return tfm__infer_elementwise(node, roles, outputs, err);
}

const struct tfm__rule tfm__rule_swiglu = {.infer = infer};

struct tfm_tensor *tfm_op_swiglu(struct tfm_graph *graph, struct tfm_tensor *gate,
                                 struct tfm_tensor *up)
{
    struct tfm_tensor *const inputs[] = {gate, up};
    return tfm__graph_append(graph, TFM_OP_SWIGLU, inputs, 2, NULL);
}
