/* SPDX-License-Identifier: MIT
 * take_rows_grad: dx[n] = sum of dy[r] over the r with rows.out[r] = n: the gradient of take_rows
 *   dy [R, ...] F32, F16, BF16 or F64 -> [N, ...] like dy
 * A row that was not taken is 0, one that was taken twice is the sum of both, rounded once. */
#include <tfm/grad.h>

#include "lib/ops/refuse.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"dy"};
    const struct tfm_tensor *dy = node->inputs[0];

    if (!tfm__is_class(dy, TFM_DTYPE_FLOAT))
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles, "dy must be of a float dtype");
    if (dy->extent != TFM_EXTENT_OUT_ROWS)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles, "dy must be [R, ...]");
    tfm__shape_like(&outputs[0], dy, dy->dtype);
    outputs[0].extent = TFM_EXTENT_ROWS;
    return TFM_STATUS_OK;
}

const struct tfm__rule tfm__rule_take_rows_grad = {.infer = infer};

struct tfm_tensor *tfm_op_take_rows_grad(struct tfm_graph *graph, struct tfm_tensor *dy)
{
    struct tfm_tensor *const inputs[] = {dy};
    return tfm__graph_append(graph, TFM_OP_TAKE_ROWS_GRAD, inputs, 1, NULL);
}
