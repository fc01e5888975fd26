/* SPDX-License-Identifier: MIT
 * sum_squares: y = sum of x_i^2 over a whole state, what the norm of all gradients is made of
 *   x [...] state F32 or F64 -> [1] as x. A run without rows computes nothing. */
#include <tfm/grad.h>

#include "lib/ops/refuse.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"x"};
    const struct tfm_tensor *x = node->inputs[0];

    if (!tfm__is_sum(x, TFM_DTYPE_F32) && !tfm__is_sum(x, TFM_DTYPE_F64))
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles, "x must be a state, f32 or f64");
    outputs[0].dtype = x->dtype;
    outputs[0].extent = TFM_EXTENT_FIXED;
    outputs[0].rank = 1;
    outputs[0].shape[0] = 1;
    return TFM_STATUS_OK;
}

const struct tfm__rule tfm__rule_sum_squares = {.infer = infer};

struct tfm_tensor *tfm_op_sum_squares(struct tfm_graph *graph, struct tfm_tensor *x)
{
    return tfm__graph_append(graph, TFM_OP_SUM_SQUARES, &x, 1, NULL);
}
