/* SPDX-License-Identifier: MIT
 * adamw: one update of a parameter w by its gradient g and the moments m and v (Loshchilov and Hutter,
 * arXiv:1711.05101), all in one pass:
 *   g' = factor g        m = beta1 m + (1 - beta1) g'        v = beta2 v + (1 - beta2) g'^2
 *   w = w - decay w - rate (correction1 m) / (sqrt(correction2 v) + eps)        g = 0
 *   w [...] trainable, states g, m, v like w, F32 (F64 if w is F64), hyper [N, 8] F32 (F64): enum tfm_adamw_hyper; of a
 *   w that is F16 or BF16 the state master [...] F32 has the exact values, and w is what they round to. No output.
 * The settings of the first row count. A run without rows changes nothing. */
#include <tfm/grad.h>

#include "lib/ops/refuse.h"

static const char *const roles[] = {"w", "g", "m", "v", "hyper", "master"};

/* g, m, v and master, which has another dtype than w: states of its shape. */
static int fits(const struct tfm_tensor *state, const struct tfm_tensor *w)
{
    return tfm__is_sum(state, tfm__companion(w->dtype)) && tfm__same_shape(state, w);
}

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    const struct tfm_tensor *w = node->inputs[0], *hyper = node->inputs[4];
    const struct tfm_tensor *master = tfm__op_input(node, 5);
    const int narrow = w->dtype == TFM_DTYPE_F16 || w->dtype == TFM_DTYPE_BF16;

    (void)outputs;
    if (w->kind != TFM_TENSOR_PARAMETER || !w->is_trainable)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "w must be a trainable parameter (tfm_graph_train)");
    for (uint32_t i = 1; i < 4; i++) {
        if (!fits(node->inputs[i], w))
            return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                                  "g, m and v must be states of the shape of w, f64 if w is, else "
                                  "f32");
    }
    if (hyper->dtype != tfm__companion(w->dtype) || hyper->extent != TFM_EXTENT_ROWS ||
        hyper->rank != 2 || hyper->shape[1] != TFM_ADAMW_HYPERS)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "hyper must be [N, 8] of the dtype of g");
    if (narrow != (master != NULL) || (master && !fits(master, w)))
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "master must be a state f32 of the shape of w if w is f16 or bf16, "
                              "and absent otherwise");
    return TFM_STATUS_OK;
}

const struct tfm__rule tfm__rule_adamw = {.infer = infer};

struct tfm_tensor *tfm_op_adamw(struct tfm_graph *graph, struct tfm_tensor *w, struct tfm_tensor *g,
                                struct tfm_tensor *m, struct tfm_tensor *v,
                                struct tfm_tensor *hyper, struct tfm_tensor *master)
{
    struct tfm_tensor *const inputs[] = {w, g, m, v, hyper, master};
    struct tfm_tensor *outputs[TFM_MAX_OUTPUTS];

    return tfm__graph_append_node(graph, TFM_OP_ADAMW, inputs, 6, NULL, outputs) ? w : NULL;
}
