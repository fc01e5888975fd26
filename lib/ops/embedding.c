/* SPDX-License-Identifier: MIT
 * embedding: y[n] = table[ids[n]]
 *   table [V, D] any float or block dtype, ids [N, ...] I32 in [0, V) -> [N, ..., D] F32 (F64 if the
 *   table is F64)
 * A gather of rows; block-typed rows are unpacked on the way. With the attribute positions = 1 the ids
 * are positions (a learned table): one past the end of the table is CONTEXT_FULL, not OUT_OF_RANGE.
 * Gradient: d table[ids[n]] += dy[n] (repeated ids add up). */
#include <tfm/grad.h>

#include "lib/ops/refuse.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"table", "ids"};
    const struct tfm_tensor *table = node->inputs[0], *ids = node->inputs[1];

    if (!tfm__is_storage(table) || ids->dtype != TFM_DTYPE_I32)
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles,
                              "table must be of a float or block dtype and ids i32");
    if (!tfm__is_constant(table) || table->rank != 2 || table->shape[0] < 1 || table->shape[1] < 1)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "table must be a parameter or buffer [V, D]");
    if (!tfm__is_whole_blocks(table))
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "D of a block-typed table must be a multiple of 32");
    if (!tfm__is_activation(ids) || ids->rank >= TFM_MAX_RANK)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "ids must be [N, ...] of rank 1..3");
    if (node->attrs.positions != 0 && node->attrs.positions != 1)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "positions must be 0 (ids) or 1 (positions)");

    tfm__shape_like(&outputs[0], ids, tfm__companion(table->dtype));
    outputs[0].shape[ids->rank] = table->shape[1];
    outputs[0].rank = ids->rank + 1;
    if (node->attrs.positions)
        tfm__tensor_positions(ids, table->shape[0]);
    else
        tfm__tensor_limit(ids, table->shape[0]);
    return TFM_STATUS_OK;
}

static void gradient(struct tfm__gradient *g)
{
    struct tfm_tensor *dtable = tfm__gradient_state(g, 0);

    if (dtable)
        tfm_op_embedding_grad(g->graph, tfm__gradient_input(g, 1), g->dy[0], dtable,
                              g->node->attrs.positions);
}

const struct tfm__rule tfm__rule_embedding = {.infer = infer, .gradient = gradient};

struct tfm_tensor *tfm_op_embedding(struct tfm_graph *graph, struct tfm_tensor *table,
                                    struct tfm_tensor *ids)
{
    struct tfm_tensor *const inputs[] = {table, ids};
    return tfm__graph_append(graph, TFM_OP_EMBEDDING, inputs, 2, NULL);
}

struct tfm_tensor *tfm_op_position_embedding(struct tfm_graph *graph, struct tfm_tensor *table,
                                             struct tfm_tensor *pos)
{
    struct tfm_tensor *const inputs[] = {table, pos};
    const struct tfm_attrs attrs = {.positions = 1};
    return tfm__graph_append(graph, TFM_OP_EMBEDDING, inputs, 2, &attrs);
}
