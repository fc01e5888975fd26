/* SPDX-License-Identifier: MIT
 * rms_norm: y = x / sqrt(mean(x^2) + eps) * gamma (Zhang and Sennrich, arXiv:1910.07467)
 *   x [N, ..., D] F32, F16, BF16 or F64, gamma [D] F32 (F64 with F64) -> like x
 * The mean runs over the last extent. gamma is applied before the one rounding to the dtype of x. eps
 * may be 0; a row of zeros then gives NaN (0 / 0).
 * Gradient: with r = 1 / sqrt(mean(x^2) + eps): dx = r (g - x r^2 mean(g x)), g = dy gamma;
 * dgamma += sum over the rows of dy x r. */
#include <math.h>

#include <tfm/grad.h>

#include "lib/ops/refuse.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"x", "gamma"};
    const struct tfm_tensor *x = node->inputs[0], *gamma = node->inputs[1];

    if (!tfm__is_class(x, TFM_DTYPE_FLOAT) || gamma->dtype != tfm__companion(x->dtype))
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles,
                              "x must be of a float dtype and gamma f32 (f64 when x is f64)");
    if (!tfm__is_activation(x) || x->rank < 2)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles, "x must be [N, ..., D]");
    if (!tfm__is_constant(gamma) || gamma->rank != 1 || gamma->shape[0] != x->shape[x->rank - 1])
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "gamma must be a parameter or buffer [D] for x [N, ..., D]");
    if (!isfinite(node->attrs.eps) || node->attrs.eps < 0)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "eps must be finite and not negative");
    tfm__shape_like(&outputs[0], x, x->dtype);
    return TFM_STATUS_OK;
}

static void gradient(struct tfm__gradient *g)
{
    g->dx[0] = tfm_op_rms_norm_grad(g->graph, tfm__gradient_input(g, 0), tfm__gradient_input(g, 1),
                                    g->dy[0], tfm__gradient_state(g, 1), g->node->attrs.eps);
}

const struct tfm__rule tfm__rule_rms_norm = {.infer = infer, .gradient = gradient};

struct tfm_tensor *tfm_op_rms_norm(struct tfm_graph *graph, struct tfm_tensor *x,
                                   struct tfm_tensor *gamma, double eps)
{
    struct tfm_tensor *const inputs[] = {x, gamma};
    const struct tfm_attrs attrs = {.eps = eps};
    return tfm__graph_append(graph, TFM_OP_RMS_NORM, inputs, 2, &attrs);
}
