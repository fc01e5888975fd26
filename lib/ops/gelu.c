/* SPDX-License-Identifier: MIT
 * gelu: y = x Phi(x), Phi the standard normal distribution (Hendrycks and Gimpel, arXiv:1606.08415)
 *   x [N, ...] F32, F16, BF16 or F64 -> like x
 *   tanh_form 0   x / 2 (1 + erf(x / sqrt 2))
 *   tanh_form 1   x / 2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
 * The forms differ by up to 4.7e-4, so a model keeps the one that it was trained with. gelu(-inf) is 0,
 * its limit.
 * Gradient, erf: dx = dy (Phi(x) + x phi(x)), phi(x) = exp(-x^2/2) / sqrt(2 pi). With t = tanh(u) and
 * u' = sqrt(2/pi) (1 + 0.134145 x^2), tanh: dx = dy ((1 + t) / 2 + x / 2 (1 - t^2) u'). */
#include <tfm/grad.h>

#include "lib/ops/elementwise.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"x"};

    if (node->attrs.tanh_form != 0 && node->attrs.tanh_form != 1)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "tanh_form must be 0 (erf) or 1 (tanh)");
    return tfm__infer_elementwise(node, roles, outputs, err);
}

static void gradient(struct tfm__gradient *g)
{
    g->dx[0] =
        tfm_op_gelu_grad(g->graph, tfm__gradient_input(g, 0), g->dy[0], g->node->attrs.tanh_form);
}

const struct tfm__rule tfm__rule_gelu = {.infer = infer, .gradient = gradient};

struct tfm_tensor *tfm_op_gelu(struct tfm_graph *graph, struct tfm_tensor *x, int tanh_form)
{
    struct tfm_tensor *const inputs[] = {x};
    const struct tfm_attrs attrs = {.tanh_form = tanh_form};
    return tfm__graph_append(graph, TFM_OP_GELU, inputs, 1, &attrs);
}
