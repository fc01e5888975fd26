/* SPDX-License-Identifier: MIT
 * mul: y = a * b, element by element (a gate that is computed elsewhere)
 *   a [N, ...] F32, F16, BF16 or F64, b like a -> like a; the product is rounded once
 * Gradient: da = dy b, db = dy a. */
#include "lib/ops/elementwise.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"a", "b"};

    return tfm__infer_elementwise(node, roles, outputs, err);
}

static void gradient(struct tfm__gradient *g)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (g->wanted[i])
            g->dx[i] = tfm_op_mul(g->graph, g->dy[0], tfm__gradient_input(g, 1 - i));
    }
}

const struct tfm__rule tfm__rule_mul = {.infer = infer, .gradient = gradient};

struct tfm_tensor *tfm_op_mul(struct tfm_graph *graph, struct tfm_tensor *a, struct tfm_tensor *b)
{
    struct tfm_tensor *const inputs[] = {a, b};
    return tfm__graph_append(graph, TFM_OP_MUL, inputs, 2, NULL);
}
