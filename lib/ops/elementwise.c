/* SPDX-License-Identifier: MIT
 * The shape rule of ops that compute element by element. */
#include <stdio.h>

#include "lib/ops/elementwise.h"

enum tfm_status tfm__infer_elementwise(const struct tfm_node *node, const char *const *roles,
                                       struct tfm_tensor *outputs, struct tfm_error *err)
{
    const struct tfm_tensor *first = node->inputs[0];
    char must[100];

    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (tfm__is_class(node->inputs[i], TFM_DTYPE_FLOAT) &&
            node->inputs[i]->dtype == first->dtype)
            continue;
        snprintf(must, sizeof must, "%s%s%s must be of %s float dtype", roles[0],
                 node->n_inputs > 1 ? " and " : "", node->n_inputs > 1 ? roles[1] : "",
                 node->n_inputs > 1 ? "one" : "a");
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles, must);
    }
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (tfm__is_activation(node->inputs[i]) && tfm__same_shape(node->inputs[i], first))
            continue;
        snprintf(must, sizeof must, "%s%s%s must be [N, ...]%s", roles[0],
                 node->n_inputs > 1 ? " and " : "", node->n_inputs > 1 ? roles[1] : "",
                 node->n_inputs > 1 ? " of one shape" : "");
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles, must);
    }
    tfm__shape_like(&outputs[0], first, first->dtype);
    return TFM_STATUS_OK;
}
