/* SPDX-License-Identifier: MIT
 * What the shape rules share: comparison of shapes and the one form of their refusals. */
#include <string.h>

#include "lib/ops/refuse.h"

int tfm__same_shape(const struct tfm_tensor *a, const struct tfm_tensor *b)
{
    if (a->rank != b->rank || a->extent != b->extent)
        return 0;
    for (int32_t i = a->extent == TFM_EXTENT_FIXED ? 0 : 1; i < a->rank; i++) {
        if (a->shape[i] != b->shape[i])
            return 0;
    }
    return 1;
}

void tfm__shape_like(struct tfm_tensor *out, const struct tfm_tensor *like, enum tfm_dtype dtype)
{
    out->dtype = dtype;
    out->extent = like->extent;
    out->rank = like->rank;
    memcpy(out->shape, like->shape, sizeof out->shape);
}

enum tfm_status tfm__op_refuse(struct tfm_error *err, enum tfm_status status,
                               const struct tfm_node *node, const char *const *roles,
                               const char *must)
{
    char list[700];

    tfm__operands_format(node, roles, list, sizeof list);
    return tfm_error_set(err, status, "%s: %s; got %s", tfm_op_name(node->op), must, list);
}
