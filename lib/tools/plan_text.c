/* SPDX-License-Identifier: MIT
 * How the forms of `tfm plan` write a tensor. */
#include "lib/tools/plan_text.h"

#include <inttypes.h>
#include <stdio.h>

void tfm__plan_extent(const struct tfm_tensor *tensor, int32_t axis, char *text, size_t size)
{
    if (axis == 0 && tensor->extent != TFM_EXTENT_FIXED)
        snprintf(text, size, "%s", tensor->extent == TFM_EXTENT_ROWS ? "N" : "R");
    else
        snprintf(text, size, "%" PRId64, tensor->shape[axis]);
}

const char *tfm__plan_shape(const struct tfm_tensor *tensor, struct tfm__shape_line *line)
{
    int n = snprintf(line->text, sizeof line->text, "[");
    for (int32_t i = 0; i < tensor->rank; i++) {
        char extent[24];
        tfm__plan_extent(tensor, i, extent, sizeof extent);
        n += snprintf(line->text + n, sizeof line->text - (size_t)n, i ? ", %s" : "%s", extent);
    }
    snprintf(line->text + n, sizeof line->text - (size_t)n, "] %s", tfm_dtype_name(tensor->dtype));
    return line->text;
}

const char *tfm__plan_kind(const struct tfm_tensor *tensor)
{
    static const char *const kinds[] = {
        [TFM_TENSOR_PARAMETER] = "parameter", [TFM_TENSOR_BUFFER] = "buffer",
        [TFM_TENSOR_INPUT] = "input",         [TFM_TENSOR_OUTPUT] = "output",
        [TFM_TENSOR_STATE] = "state",         [TFM_TENSOR_INTERMEDIATE] = "intermediate",
    };
    return kinds[tensor->kind];
}

const char *tfm__plan_layer(const struct tfm_node *node)
{
    return node->scope && node->scope->name ? node->scope->name : "";
}
