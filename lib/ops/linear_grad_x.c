/* SPDX-License-Identifier: MIT
 * linear_grad_x: dx = dy W, the gradient of linear by its input
 *   weight [out, in] any float (not F64) or block dtype, dy [N, ..., out] F32 -> [N, ..., in] F32;
 *   or everything F64 */
#include <tfm/grad.h>

#include "lib/ops/refuse.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"weight", "dy"};
    const struct tfm_tensor *weight = node->inputs[0], *dy = node->inputs[1];
    const int32_t last = dy->rank - 1;

    if (dy->dtype != TFM_DTYPE_F32 && dy->dtype != TFM_DTYPE_F64)
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles, "dy must be f32 or f64");
    if (!tfm__is_storage(weight) ||
        (weight->dtype == TFM_DTYPE_F64) != (dy->dtype == TFM_DTYPE_F64))
        return tfm__op_refuse(
            err, TFM_STATUS_DTYPE, node, roles,
            "weight must be of a float or block dtype, and f64 just when dy is f64");
    if (!tfm__is_activation(dy) || dy->rank < 2)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles, "dy must be [N, ..., out]");
    if (!tfm__is_constant(weight) || weight->rank != 2 || weight->shape[0] != dy->shape[last])
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "weight must be a parameter or buffer [out, in] with the `out` of dy "
                              "[N, ..., out]");
    tfm__shape_like(&outputs[0], dy, dy->dtype);
    outputs[0].shape[last] = weight->shape[1];
    return TFM_STATUS_OK;
}

const struct tfm__rule tfm__rule_linear_grad_x = {.infer = infer};

struct tfm_tensor *tfm_op_linear_grad_x(struct tfm_graph *graph, struct tfm_tensor *weight,
                                        struct tfm_tensor *dy)
{
    struct tfm_tensor *const inputs[] = {weight, dy};
    return tfm__graph_append(graph, TFM_OP_LINEAR_GRAD_X, inputs, 2, NULL);
}
