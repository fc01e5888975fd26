/* SPDX-License-Identifier: MIT
 * linear_grad_w: dW += dy^T x, db += sum of dy over the rows: the gradient of linear by its weight and bias
 *   x [N, ..., in], dy [N, ..., out] F32, states dw [out, in], db [out] F32, one of which may be absent;
 *   or everything F64. No output. Attribute bf16_factors 1: x and dy may be rounded to BF16. */
#include <tfm/grad.h>

#include "lib/ops/refuse.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"x", "dy", "dw", "db"};
    const struct tfm_tensor *x = node->inputs[0], *dy = node->inputs[1];
    const struct tfm_tensor *dw = tfm__op_input(node, 2), *db = tfm__op_input(node, 3);

    (void)outputs;
    if ((x->dtype != TFM_DTYPE_F32 && x->dtype != TFM_DTYPE_F64) || dy->dtype != x->dtype)
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles,
                              "x and dy must both be f32 or both f64");
    if (!tfm__is_activation(x) || x->rank < 2 || dy->rank != x->rank || dy->extent != x->extent)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "x must be [N, ..., in] and dy [N, ..., out]");
    for (int32_t i = 1; i < x->rank - 1; i++) {
        if (x->shape[i] != dy->shape[i])
            return tfm__op_refuse(
                err, TFM_STATUS_SHAPE, node, roles,
                "x [N, ..., in] and dy [N, ..., out] may differ in the last extent "
                "only");
    }
    const int64_t in = x->shape[x->rank - 1], out = dy->shape[dy->rank - 1];
    if (!dw && !db)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "dw or db must be there, or both");
    if (dw &&
        !(tfm__is_sum(dw, x->dtype) && dw->rank == 2 && dw->shape[0] == out && dw->shape[1] == in))
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "dw must be a state [out, in] of the dtype of x");
    if (db && !(tfm__is_sum(db, x->dtype) && db->rank == 1 && db->shape[0] == out))
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "db must be a state [out] of the dtype of x");
    return TFM_STATUS_OK;
}

const struct tfm__rule tfm__rule_linear_grad_w = {.infer = infer};

struct tfm_tensor *tfm_op_linear_grad_w(struct tfm_graph *graph, struct tfm_tensor *x,
                                        struct tfm_tensor *dy, struct tfm_tensor *dw,
                                        struct tfm_tensor *db)
{
    struct tfm_tensor *const inputs[] = {x, dy, dw, db};
    struct tfm_tensor *outputs[TFM_MAX_OUTPUTS];

    return tfm__graph_append_node(graph, TFM_OP_LINEAR_GRAD_W, inputs, 4, NULL, outputs)
               ? (dw ? dw : db)
               : NULL;
}
