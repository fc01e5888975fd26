/* SPDX-License-Identifier: MIT
 * relu: y = max(x, 0) (Nair and Hinton, ICML 2010)
 *   x [N, ...] F32, F16, BF16 or F64 -> like x, exactly; NaN stays NaN
 * Gradient: dx = dy where x > 0, else 0. */
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
    g->dx[0] = tfm_op_relu_grad(g->graph, tfm__gradient_input(g, 0), g->dy[0]);
}

const struct tfm__rule tfm__rule_relu = {.infer = infer, .gradient = gradient};

struct tfm_tensor *tfm_op_relu(struct tfm_graph *graph, struct tfm_tensor *x)
{
    struct tfm_tensor *const inputs[] = {x};
    return tfm__graph_append(graph, TFM_OP_RELU, inputs, 1, NULL);
}
