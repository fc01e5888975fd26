/* SPDX-License-Identifier: MIT
 * rope: rotary position embedding (Su et al., arXiv:2104.09864)
 *   x [N, H, d] F32, F16, BF16 or F64, d even, pos [N] I32 in [0, P), table [P, r/2, 2] of (cos, sin),
 *   F32 (F64 with F64), r even and <= d -> like x
 *   rope_layout 1: x [N, H, T, d], pos [N, T], or [T] as a buffer: N sequences of T tokens, the heads
 *   outside the tokens; rope_layout 2: x [N, T, H, d], the heads inside
 * With (c, s) = table[pos of the row][i], pair i of every head becomes (a c - b s, a s + b c):
 *   adjacent   a = x[2i], b = x[2i+1]      [a b a b a b]
 *   halves     a = x[i],  b = x[i + r/2]   [a a a b b b]
 * Elements r..d-1 of a head are copied. A position past the end of the table is CONTEXT_FULL.
 * With the attribute inverse = 1 the rotation is by the negative angle: (a c + b s, b c - a s).
 * Gradient: the rotation by the negative angle. The table is a constant. */
#include <tfm/grad.h>

#include "lib/ops/refuse.h"

static const char *const roles[] = {"x", "pos", "table"};

/* x and pos by layout. */
static enum tfm_status check_rows(const struct tfm_node *node, struct tfm_error *err)
{
    const struct tfm_tensor *x = node->inputs[0], *pos = node->inputs[1];
    const int same_rows = pos->extent == x->extent;

    if (node->attrs.rope_layout == TFM_ROPE_ROWS) {
        if (!tfm__is_activation(x) || x->rank != 3)
            return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles, "x must be [N, H, d]");
        if (!same_rows || pos->rank != 1)
            return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                                  "pos must be [N] for x [N, H, d]");
        return TFM_STATUS_OK;
    }
    const int heads_first = node->attrs.rope_layout == TFM_ROPE_HEADS_FIRST;
    if (!tfm__is_activation(x) || x->rank != 4)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              heads_first ? "x must be [N, H, T, d]" : "x must be [N, T, H, d]");
    const int64_t tokens = x->shape[heads_first ? 2 : 1];
    if (!(same_rows && pos->rank == 2 && pos->shape[1] == tokens) &&
        !(tfm__is_constant(pos) && pos->rank == 1 && pos->shape[0] == tokens))
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              heads_first
                                  ? "pos must be [N, T], or [T] as a buffer, for x [N, H, T, d]"
                                  : "pos must be [N, T], or [T] as a buffer, for x [N, T, H, d]");
    return TFM_STATUS_OK;
}

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    const struct tfm_tensor *x = node->inputs[0], *pos = node->inputs[1], *table = node->inputs[2];

    if (!tfm__is_class(x, TFM_DTYPE_FLOAT) || pos->dtype != TFM_DTYPE_I32 ||
        table->dtype != tfm__companion(x->dtype))
        return tfm__op_refuse(
            err, TFM_STATUS_DTYPE, node, roles,
            "x must be of a float dtype, pos i32 and table f32 (f64 when x is f64)");
    if (node->attrs.rope_style != TFM_ROPE_ADJACENT && node->attrs.rope_style != TFM_ROPE_HALVES)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "rope_style must be 0 (adjacent) or 1 (halves)");
    if (node->attrs.rope_layout < TFM_ROPE_ROWS || node->attrs.rope_layout > TFM_ROPE_TOKENS_FIRST)
        return tfm__op_refuse(
            err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
            "rope_layout must be 0 (x [N, H, d]), 1 (x [N, H, T, d]) or 2 (x [N, T, H, d])");
    if (node->attrs.inverse != 0 && node->attrs.inverse != 1)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "inverse must be 0 or 1 (the negative angle)");
    const enum tfm_status status = check_rows(node, err);
    if (status != TFM_STATUS_OK)
        return status;
    const int64_t d = x->shape[x->rank - 1];
    if (d % 2 != 0)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "d, the last extent of x, must be even: a rotation acts on pairs");
    if (!tfm__is_constant(table) || table->rank != 3 || table->shape[2] != 2 ||
        table->shape[0] < 1 || table->shape[1] < 1)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "table must be a parameter or buffer [P, r/2, 2]");
    if (table->shape[1] > d / 2)
        return tfm__op_refuse(
            err, TFM_STATUS_SHAPE, node, roles,
            "table [P, r/2, 2] must not rotate more than d, the last extent of x");

    const int64_t heads = x->shape[node->attrs.rope_layout == TFM_ROPE_TOKENS_FIRST ? 2 : 1];
    if (heads > INT32_MAX || d > INT32_MAX)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles, "H and d must fit 31 bits");
    node->attrs.heads = (int32_t)heads;
    node->attrs.head_dim = (int32_t)d;
    tfm__shape_like(&outputs[0], x, x->dtype);
    tfm__tensor_positions(pos, table->shape[0]);
    return TFM_STATUS_OK;
}

static void gradient(struct tfm__gradient *g)
{
    struct tfm_attrs attrs = g->node->attrs;
    struct tfm_tensor *const inputs[] = {g->dy[0], tfm__gradient_input(g, 1),
                                         tfm__gradient_input(g, 2)};

    attrs.inverse = !attrs.inverse;
    g->dx[0] = tfm__graph_append(g->graph, TFM_OP_ROPE, inputs, 3, &attrs);
}

const struct tfm__rule tfm__rule_rope = {.infer = infer, .gradient = gradient};

struct tfm_tensor *tfm_op_rope_inverse(struct tfm_graph *graph, struct tfm_tensor *x,
                                       struct tfm_tensor *pos, struct tfm_tensor *table,
                                       enum tfm_rope_style style, enum tfm_rope_layout layout)
{
    struct tfm_tensor *const inputs[] = {x, pos, table};
    const struct tfm_attrs attrs = {
        .rope_style = (int32_t)style, .rope_layout = (int32_t)layout, .inverse = 1};
    return tfm__graph_append(graph, TFM_OP_ROPE, inputs, 3, &attrs);
}

struct tfm_tensor *tfm_op_rope_layout(struct tfm_graph *graph, struct tfm_tensor *x,
                                      struct tfm_tensor *pos, struct tfm_tensor *table,
                                      enum tfm_rope_style style, enum tfm_rope_layout layout)
{
    struct tfm_tensor *const inputs[] = {x, pos, table};
    const struct tfm_attrs attrs = {.rope_style = (int32_t)style, .rope_layout = (int32_t)layout};
    return tfm__graph_append(graph, TFM_OP_ROPE, inputs, 3, &attrs);
}

struct tfm_tensor *tfm_op_rope(struct tfm_graph *graph, struct tfm_tensor *x,
                               struct tfm_tensor *pos, struct tfm_tensor *table,
                               enum tfm_rope_style style)
{
    return tfm_op_rope_layout(graph, x, pos, table, style, TFM_ROPE_ROWS);
}
