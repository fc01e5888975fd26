/* SPDX-License-Identifier: MIT
 * add: y = a + b, element by element (the residual connection)
 *   a [N, ...] F32, F16, BF16 or F64, b like a -> like a; the sum is rounded once
 * Gradient: da = dy, db = dy. */
#include "lib/ops/refuse.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"a", "b"};
    const struct tfm_tensor *a = node->inputs[0], *b = node->inputs[1];

    if (!tfm__is_class(a, TFM_DTYPE_FLOAT) || a->dtype != b->dtype)
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles,
                              "a and b must be of one float dtype");
    if (!tfm__is_activation(a) || !tfm__same_shape(a, b))
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "a and b must be [N, ...] of one shape");
    tfm__shape_like(&outputs[0], a, a->dtype);
    return TFM_STATUS_OK;
}

const struct tfm__rule tfm__rule_add = {.infer = infer};

struct tfm_tensor *tfm_op_add(struct tfm_graph *graph, struct tfm_tensor *a, struct tfm_tensor *b)
{
    struct tfm_tensor *const inputs[] = {a, b};
    return tfm__graph_append(graph, TFM_OP_ADD, inputs, 2, NULL);
}
