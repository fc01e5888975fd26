/* SPDX-License-Identifier: MIT
 * take_rows: y[r] = x[rows.out[r]]
 *   x [N, ...] any dtype -> [R, ...] like x, bit for bit
 * The head of a decoder runs on the rows that are sampled only. A row may be named twice or never.
 * Gradient: dx[rows.out[r]] += dy[r], the other rows 0. */
#include <tfm/grad.h>

#include "lib/ops/refuse.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"x"};
    const struct tfm_tensor *x = node->inputs[0];

    if (x->extent != TFM_EXTENT_ROWS)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles, "x must be [N, ...]");
    if (tfm__is_class(x, TFM_DTYPE_BLOCK) && (x->rank < 2 || !tfm__is_whole_blocks(x)))
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "the last extent of a block-typed x must be a multiple of 32");
    tfm__shape_like(&outputs[0], x, x->dtype);
    outputs[0].extent = TFM_EXTENT_OUT_ROWS;
    return TFM_STATUS_OK;
}

static void gradient(struct tfm__gradient *g)
{
    g->dx[0] = tfm_op_take_rows_grad(g->graph, g->dy[0]);
}

const struct tfm__rule tfm__rule_take_rows = {.infer = infer, .gradient = gradient};

struct tfm_tensor *tfm_op_take_rows(struct tfm_graph *graph, struct tfm_tensor *x)
{
    struct tfm_tensor *const inputs[] = {x};
    return tfm__graph_append(graph, TFM_OP_TAKE_ROWS, inputs, 1, NULL);
}
