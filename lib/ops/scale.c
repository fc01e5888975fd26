/* SPDX-License-Identifier: MIT
 * scale: y = factor * x (embeddings times sqrt(D), residuals, logits); with a soft cap S > 0
 * y = S tanh(factor * x / S), which never leaves (-S, S) (logits of Gemma 2, arXiv:2408.00118)
 *   x [N, ...] F32, F16, BF16 or F64 -> like x; rounded once
 * Gradient: dx = factor dy, and with a cap dx = factor (1 - (y / S)^2) dy. */
#include <math.h>

#include <tfm/grad.h>

#include "lib/ops/elementwise.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"x"};

    if (!isfinite(node->attrs.factor))
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "factor must be finite");
    if (!isfinite(node->attrs.softcap) || node->attrs.softcap < 0)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "softcap must be finite and positive; 0 = off");
    return tfm__infer_elementwise(node, roles, outputs, err);
}

static void gradient(struct tfm__gradient *g)
{
    if (g->node->attrs.softcap > 0)
        g->dx[0] = tfm_op_scale_grad(g->graph, tfm__gradient_input(g, 0), g->dy[0],
                                     g->node->attrs.factor, g->node->attrs.softcap);
    else
        g->dx[0] = tfm_op_scale(g->graph, g->dy[0], g->node->attrs.factor);
}

const struct tfm__rule tfm__rule_scale = {.infer = infer, .gradient = gradient};

struct tfm_tensor *tfm_op_scale(struct tfm_graph *graph, struct tfm_tensor *x, double factor)
{
    struct tfm_tensor *const inputs[] = {x};
    const struct tfm_attrs attrs = {.factor = factor};
    return tfm__graph_append(graph, TFM_OP_SCALE, inputs, 1, &attrs);
}

struct tfm_tensor *tfm_op_softcap(struct tfm_graph *graph, struct tfm_tensor *x, double softcap)
{
    struct tfm_tensor *const inputs[] = {x};
    const struct tfm_attrs attrs = {.factor = 1, .softcap = softcap};
    return tfm__graph_append(graph, TFM_OP_SCALE, inputs, 1, &attrs);
}
