/* SPDX-License-Identifier: MIT
 * What the shape rules of rms_norm_grad and layer_norm_grad share. */
#include "lib/ops/norm_grad.h"

#include <math.h>

enum tfm_status tfm__infer_norm_grad(struct tfm_node *node, const char *const *roles,
                                     struct tfm_tensor *outputs, struct tfm_error *err)
{
    const struct tfm_tensor *x = node->inputs[0], *gamma = node->inputs[1], *dy = node->inputs[2];

    if ((x->dtype != TFM_DTYPE_F32 && x->dtype != TFM_DTYPE_F64) || gamma->dtype != x->dtype ||
        dy->dtype != x->dtype)
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles,
                              "x, gamma and dy must all be f32 or all f64");
    if (!tfm__is_activation(x) || x->rank < 2 || !tfm__is_activation(dy) || !tfm__same_shape(dy, x))
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "x must be [N, ..., D] and dy like it");
    const int64_t width = x->shape[x->rank - 1];
    if (!tfm__is_constant(gamma) || gamma->rank != 1 || gamma->shape[0] != width)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "gamma must be a parameter or buffer [D] for x [N, ..., D]");
    for (uint32_t i = 3; i < node->n_inputs; i++) {
        const struct tfm_tensor *sum = node->inputs[i];
        if (sum && !(tfm__is_sum(sum, x->dtype) && sum->rank == 1 && sum->shape[0] == width))
            return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                                  "a sum must be a state [D] of the dtype of x");
    }
    if (!isfinite(node->attrs.eps) || node->attrs.eps < 0)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "eps must be finite and not negative");
    tfm__shape_like(&outputs[0], x, x->dtype);
    return TFM_STATUS_OK;
}
