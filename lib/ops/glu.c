/* SPDX-License-Identifier: MIT
 * glu: y = sigmoid(gate) * up, sigmoid(g) = 1 / (1 + exp(-g)) (Dauphin et al., arXiv:1612.08083)
 *   gate [N, ...] F32, F16, BF16 or F64, up like gate -> like gate
 * Gradient: with s = sigmoid(gate): dgate = dy up s (1 - s), dup = dy s. */
#include "lib/ops/elementwise.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"gate", "up"};

    return tfm__infer_elementwise(node, roles, outputs, err);
}

const struct tfm__rule tfm__rule_glu = {.infer = infer};

struct tfm_tensor *tfm_op_glu(struct tfm_graph *graph, struct tfm_tensor *gate,
                              struct tfm_tensor *up)
{
    struct tfm_tensor *const inputs[] = {gate, up};
    return tfm__graph_append(graph, TFM_OP_GLU, inputs, 2, NULL);
}
