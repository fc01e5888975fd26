/* SPDX-License-Identifier: MIT
 * swiglu: y = silu(gate) * up, silu(g) = g / (1 + exp(-g)) (Shazeer, arXiv:2002.05202)
 *   gate [N, ...] F32, F16, BF16 or F64, up like gate -> like gate
 * silu(-inf) is 0, its limit, not the NaN of -inf / inf.
 * Gradient: with s = sigmoid(gate): dgate = dy up s (1 + gate (1 - s)), dup = dy gate s. */
#include <tfm/grad.h>

#include "lib/ops/elementwise.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"gate", "up"};

    return tfm__infer_elementwise(node, roles, outputs, err);
}

static void gradient(struct tfm__gradient *g)
{
    struct tfm_tensor *gate = tfm__gradient_input(g, 0), *up = tfm__gradient_input(g, 1);

    if (g->wanted[0] && g->wanted[1])
        g->dx[0] = tfm_op_swiglu_grad(g->graph, gate, up, g->dy[0], &g->dx[1]);
    else if (g->wanted[0])
        g->dx[0] = tfm_op_silu_grad(g->graph, gate, tfm_op_mul(g->graph, g->dy[0], up));
    else if (g->wanted[1])
        g->dx[1] = tfm_op_swiglu(g->graph, gate, g->dy[0]);
}

const struct tfm__rule tfm__rule_swiglu = {.infer = infer, .gradient = gradient};

struct tfm_tensor *tfm_op_swiglu(struct tfm_graph *graph, struct tfm_tensor *gate,
                                 struct tfm_tensor *up)
{
    struct tfm_tensor *const inputs[] = {gate, up};
    return tfm__graph_append(graph, TFM_OP_SWIGLU, inputs, 2, NULL);
}
