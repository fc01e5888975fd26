/* SPDX-License-Identifier: MIT
 * embedding_grad: dtable[ids[n]] += dy[n], in the order of the rows: the gradient of embedding by its table
 *   ids [N, ...] I32 in [0, V), dy [N, ..., D] F32, state dtable [V, D] F32; or everything F64. No output.
 * With the attribute positions = 1 the ids are positions. */
#include <tfm/grad.h>

#include "lib/ops/refuse.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"ids", "dy", "dtable"};
    const struct tfm_tensor *ids = node->inputs[0], *dy = node->inputs[1];
    const struct tfm_tensor *dtable = node->inputs[2];

    (void)outputs;
    if (ids->dtype != TFM_DTYPE_I32 || (dy->dtype != TFM_DTYPE_F32 && dy->dtype != TFM_DTYPE_F64))
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles,
                              "ids must be i32 and dy f32 or f64");
    if (!tfm__is_activation(ids) || dy->extent != ids->extent || dy->rank != ids->rank + 1)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "ids must be [N, ...] and dy [N, ..., D]");
    for (int32_t i = 1; i < ids->rank; i++) {
        if (ids->shape[i] != dy->shape[i])
            return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                                  "dy [N, ..., D] must have the extents of ids [N, ...]");
    }
    if (!tfm__is_sum(dtable, dy->dtype) || dtable->rank != 2 ||
        dtable->shape[1] != dy->shape[dy->rank - 1])
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "dtable must be a state [V, D] of the dtype of dy [N, ..., D]");
    if (node->attrs.positions != 0 && node->attrs.positions != 1)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "positions must be 0 (ids) or 1 (positions)");
    if (node->attrs.positions)
        tfm__tensor_positions(ids, dtable->shape[0]);
    else
        tfm__tensor_limit(ids, dtable->shape[0]);
    return TFM_STATUS_OK;
}

const struct tfm__rule tfm__rule_embedding_grad = {.infer = infer};

struct tfm_tensor *tfm_op_embedding_grad(struct tfm_graph *graph, struct tfm_tensor *ids,
                                         struct tfm_tensor *dy, struct tfm_tensor *dtable,
                                         int positions)
{
    struct tfm_tensor *const inputs[] = {ids, dy, dtable};
    struct tfm_tensor *outputs[TFM_MAX_OUTPUTS];
    const struct tfm_attrs attrs = {.positions = positions};

    return tfm__graph_append_node(graph, TFM_OP_EMBEDDING_GRAD, inputs, 3, &attrs, outputs) ? dtable
                                                                                            : NULL;
}
