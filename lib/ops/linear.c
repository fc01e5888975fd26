/* SPDX-License-Identifier: MIT
 * linear: y = x W^T (+ b)
 *   x [N, ..., in] F32, weight [out, in] any float (not F64) or block dtype, bias [out] F32 or absent
 *   -> [N, ..., out] F32; or everything F64
 * The weight lies as PyTorch stores it: a row of it is one output feature. It acts on the last extent.
 * Gradient: dx = dy W, dW += dy^T x, db += sum of dy over the rows. */
#include <tfm/grad.h>

#include "lib/ops/refuse.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"x", "weight", "bias"};
    const struct tfm_tensor *x = node->inputs[0], *weight = node->inputs[1];
    const struct tfm_tensor *bias = node->n_inputs > 2 ? node->inputs[2] : NULL;

    if (x->dtype != TFM_DTYPE_F32 && x->dtype != TFM_DTYPE_F64)
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles, "x must be f32 or f64");
    if (!tfm__is_storage(weight) || (weight->dtype == TFM_DTYPE_F64) != (x->dtype == TFM_DTYPE_F64))
        return tfm__op_refuse(
            err, TFM_STATUS_DTYPE, node, roles,
            "weight must be of a float or block dtype, and f64 just when x is f64");
    if (bias && bias->dtype != x->dtype)
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles, "bias must be of the dtype of x");
    if (!tfm__is_activation(x) || x->rank < 2)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles, "x must be [N, ..., in]");
    const int32_t last = x->rank - 1;
    if (!tfm__is_constant(weight) || weight->rank != 2 || weight->shape[0] < 1)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "weight must be a parameter or buffer [out, in]");
    if (weight->shape[1] != x->shape[last] || x->shape[last] < 1)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "x [N, ..., in] and weight [out, in] must have the same `in`");
    if (!tfm__is_whole_blocks(weight))
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "`in` of a block-typed weight must be a multiple of 32");
    if (bias && (!tfm__is_constant(bias) || bias->rank != 1 || bias->shape[0] != weight->shape[0]))
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "bias must be a parameter or buffer [out] for weight [out, in]");

    tfm__shape_like(&outputs[0], x, x->dtype);
    outputs[0].shape[last] = weight->shape[0];
    return TFM_STATUS_OK;
}

static void gradient(struct tfm__gradient *g)
{
    struct tfm_tensor *x = tfm__gradient_input(g, 0), *weight = tfm__gradient_input(g, 1);

    if (g->wanted[0])
        g->dx[0] = tfm_op_linear_grad_x(g->graph, weight, g->dy[0]);
    struct tfm_tensor *dw = tfm__gradient_state(g, 1), *db = tfm__gradient_state(g, 2);
    if (dw || db) {
        struct tfm_tensor *const inputs[] = {x, g->dy[0], dw, db};
        const struct tfm_attrs attrs = {.bf16_factors = weight->dtype == TFM_DTYPE_BF16};
        struct tfm_tensor *outputs[TFM_MAX_OUTPUTS];
        tfm__graph_append_node(g->graph, TFM_OP_LINEAR_GRAD_W, inputs, 4, &attrs, outputs);
    }
}

const struct tfm__rule tfm__rule_linear = {.infer = infer, .gradient = gradient};

struct tfm_tensor *tfm_op_linear(struct tfm_graph *graph, struct tfm_tensor *x,
                                 struct tfm_tensor *weight, struct tfm_tensor *bias)
{
    struct tfm_tensor *const inputs[] = {x, weight, bias};
    return tfm__graph_append(graph, TFM_OP_LINEAR, inputs, bias ? 3 : 2, NULL);
}
