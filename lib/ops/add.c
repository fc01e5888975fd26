/* SPDX-License-Identifier: MIT
 * add: y = a + b, element by element (the residual connection)
 *   a [N, ...] F32, F16, BF16 or F64, b like a -> like a; the sum is rounded once
 * Gradient: da = dy, db = dy. */
#include "lib/ops/elementwise.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"a", "b"};

    return tfm__infer_elementwise(node, roles, outputs, err);
}

static void gradient(struct tfm__gradient *g)
{
    g->dx[0] = g->dx[1] = g->dy[0];
}

const struct tfm__rule tfm__rule_add = {.infer = infer, .gradient = gradient};

struct tfm_tensor *tfm_op_add(struct tfm_graph *graph, struct tfm_tensor *a, struct tfm_tensor *b)
{
    struct tfm_tensor *const inputs[] = {a, b};
    return tfm__graph_append(graph, TFM_OP_ADD, inputs, 2, NULL);
}
