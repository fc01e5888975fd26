/* SPDX-License-Identifier: MIT
 * layer_norm: y = (x - m) / sqrt(v + eps) * gamma + beta, with m = mean(x) and v = mean((x - m)^2) over
 * the last extent (Ba et al., arXiv:1607.06450)
 *   x [N, ..., D] F32, F16, BF16 or F64, gamma [D] F32 (F64 with F64), beta like gamma or absent
 *   -> like x
 * v is taken from the differences, in a second pass: mean(x^2) - m^2 cancels. gamma and beta are applied
 * before the one rounding to the dtype of x. eps may be 0; a constant row then gives NaN (0 / 0).
 * Gradient: with r = 1 / sqrt(v + eps), n = (x - m) r, g = dy gamma: dx = r (g - mean(g) - n mean(g n));
 * over the rows dgamma += dy n, dbeta += dy. */
#include <math.h>

#include <tfm/grad.h>

#include "lib/ops/refuse.h"

static int is_vector(const struct tfm_tensor *t, const struct tfm_tensor *x)
{
    return tfm__is_constant(t) && t->rank == 1 && t->shape[0] == x->shape[x->rank - 1];
}

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"x", "gamma", "beta"};
    const struct tfm_tensor *x = node->inputs[0], *gamma = node->inputs[1];
    const struct tfm_tensor *beta = node->n_inputs > 2 ? node->inputs[2] : NULL;

    if (!tfm__is_class(x, TFM_DTYPE_FLOAT) || gamma->dtype != tfm__companion(x->dtype) ||
        (beta && beta->dtype != gamma->dtype))
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles,
                              "x must be of a float dtype, gamma and beta f32 (f64 when x is f64)");
    if (!tfm__is_activation(x) || x->rank < 2)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles, "x must be [N, ..., D]");
    if (!is_vector(gamma, x) || (beta && !is_vector(beta, x)))
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "gamma and beta must be parameters or buffers [D] for x [N, ..., D]");
    if (!isfinite(node->attrs.eps) || node->attrs.eps < 0)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "eps must be finite and not negative");
    tfm__shape_like(&outputs[0], x, x->dtype);
    return TFM_STATUS_OK;
}

static void gradient(struct tfm__gradient *g)
{
    struct tfm_tensor *dgamma = tfm__gradient_state(g, 1), *dbeta = tfm__gradient_state(g, 2);

    g->dx[0] =
        tfm_op_layer_norm_grad(g->graph, tfm__gradient_input(g, 0), tfm__gradient_input(g, 1),
                               g->dy[0], dgamma, dbeta, g->node->attrs.eps);
}

const struct tfm__rule tfm__rule_layer_norm = {.infer = infer, .gradient = gradient};

struct tfm_tensor *tfm_op_layer_norm(struct tfm_graph *graph, struct tfm_tensor *x,
                                     struct tfm_tensor *gamma, struct tfm_tensor *beta, double eps)
{
    struct tfm_tensor *const inputs[] = {x, gamma, beta};
    const struct tfm_attrs attrs = {.eps = eps};
    return tfm__graph_append(graph, TFM_OP_LAYER_NORM, inputs, 3, &attrs);
}
