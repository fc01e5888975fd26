/* SPDX-License-Identifier: MIT
 * The shape rule of ops that compute element by element. */
#include <stdio.h>

#include "lib/ops/elementwise.h"

/* "x", "a and b", "a, b and c" */
static void name_all(const struct tfm_node *node, const char *const *roles, char *text, size_t size)
{
    size_t n = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < node->n_inputs && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%s",
                              i == 0                   ? ""
                              : i + 1 < node->n_inputs ? ", "
                                                       : " and ",
                              roles[i]);
}

enum tfm_status tfm__infer_elementwise(const struct tfm_node *node, const char *const *roles,
                                       struct tfm_tensor *outputs, struct tfm_error *err)
{
    const struct tfm_tensor *first = node->inputs[0];
    char must[100], all[60];

    name_all(node, roles, all, sizeof all);
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (tfm__is_class(node->inputs[i], TFM_DTYPE_FLOAT) &&
            node->inputs[i]->dtype == first->dtype)
            continue;
        snprintf(must, sizeof must, "%s must be of %s float dtype", all,
                 node->n_inputs > 1 ? "one" : "a");
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles, must);
    }
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (tfm__is_activation(node->inputs[i]) && tfm__same_shape(node->inputs[i], first))
            continue;
        snprintf(must, sizeof must, "%s must be [N, ...]%s", all,
                 node->n_inputs > 1 ? " of one shape" : "");
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles, must);
    }
    tfm__shape_like(&outputs[0], first, first->dtype);
    return TFM_STATUS_OK;
}
