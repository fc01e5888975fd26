/* SPDX-License-Identifier: MIT
 * silu: y = x / (1 + exp(-x)), also called swish (Hendrycks and Gimpel, arXiv:1606.08415;
 * Ramachandran et al., arXiv:1710.05941)
 *   x [N, ...] F32, F16, BF16 or F64 -> like x
 * silu(-inf) is 0, its limit. The minimum is -0.278465 at x = -1.278465: it is no probability.
 * Gradient: with s = sigmoid(x): dx = dy s (1 + x (1 - s)). */
#include <tfm/grad.h>

#include "lib/ops/elementwise.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"x"};

    return tfm__infer_elementwise(node, roles, outputs, err);
}

static void gradient(struct tfm__gradient *g)
{
    g->dx[0] = tfm_op_silu_grad(g->graph, tfm__gradient_input(g, 0), g->dy[0]);
}

const struct tfm__rule tfm__rule_silu = {.infer = infer, .gradient = gradient};

struct tfm_tensor *tfm_op_silu(struct tfm_graph *graph, struct tfm_tensor *x)
{
    struct tfm_tensor *const inputs[] = {x};
    return tfm__graph_append(graph, TFM_OP_SILU, inputs, 1, NULL);
}
