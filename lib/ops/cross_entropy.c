/* SPDX-License-Identifier: MIT
 * cross_entropy: the loss of a classifier, whose logits never exist all at once
 *   x [N, D] F32, weight [V, D] any float (not F64) or block dtype, targets [N] I32 in [0, V) or -1 = none
 *   -> loss [N], lse [N] F32; or everything F64
 *   logit_v = x . weight[v], with a soft cap S > 0 S tanh(x . weight[v] / S) (Gemma 2, arXiv:2408.00118)
 *   lse = log(sum over v of exp(logit_v)),  loss = lse - logit_target
 * computed with the largest logit taken out of the sum, so that large logits do not overflow. A row without a
 * target has loss 0 and no gradient; its lse is as that of any row. The mean over the rows with a target is the
 * caller's: the gradient of loss that he gives is 1 / (their number).
 * Gradient: d logit = dloss (softmax(logit) - onehot(target)), with a cap times 1 - (logit / S)^2;
 * dx = d logit weight, dW += d logit^T x. */
#include "lib/ops/cross_entropy.h"

#include <math.h>

#include <tfm/grad.h>

static int is_column(const struct tfm_tensor *t, const struct tfm_tensor *x)
{
    return t->rank == 1 && t->extent == x->extent;
}

enum tfm_status tfm__cross_entropy_check(const struct tfm_node *node, const char *const *roles,
                                         struct tfm_error *err)
{
    const struct tfm_tensor *x = node->inputs[0], *weight = node->inputs[1];
    const struct tfm_tensor *targets = node->inputs[2];

    if (x->dtype != TFM_DTYPE_F32 && x->dtype != TFM_DTYPE_F64)
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles, "x must be f32 or f64");
    if (!tfm__is_storage(weight) || (weight->dtype == TFM_DTYPE_F64) != (x->dtype == TFM_DTYPE_F64))
        return tfm__op_refuse(
            err, TFM_STATUS_DTYPE, node, roles,
            "weight must be of a float or block dtype, and f64 just when x is f64");
    if (targets->dtype != TFM_DTYPE_I32)
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles, "targets must be i32");
    if (!tfm__is_activation(x) || x->rank != 2 || x->shape[1] < 1)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles, "x must be [N, D]");
    if (!tfm__is_constant(weight) || weight->rank != 2 || weight->shape[0] < 1 ||
        weight->shape[1] != x->shape[1])
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "weight must be a parameter or buffer [V, D] with the D of x [N, D]");
    if (!is_column(targets, x))
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "targets must be [N] for x [N, D]");
    if (!isfinite(node->attrs.softcap) || node->attrs.softcap < 0)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "softcap must be finite and positive; 0 = off");
    tfm__tensor_limit_or_none(targets, weight->shape[0]);
    return TFM_STATUS_OK;
}

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"x", "weight", "targets"};
    const enum tfm_status status = tfm__cross_entropy_check(node, roles, err);

    if (status != TFM_STATUS_OK)
        return status;
    for (int i = 0; i < 2; i++)
        tfm__shape_like(&outputs[i], node->inputs[2], node->inputs[0]->dtype);
    return TFM_STATUS_OK;
}

static void gradient(struct tfm__gradient *g)
{
    struct tfm_tensor *dweight = tfm__gradient_state(g, 1);

    if (g->dy[1]) {
        tfm_graph_refuse(g->graph, TFM_STATUS_UNSUPPORTED,
                         "cross_entropy: lse has no gradient; only loss has");
        return;
    }
    g->dx[0] = tfm_op_cross_entropy_grad(
        g->graph, tfm__gradient_input(g, 0), tfm__gradient_input(g, 1), tfm__gradient_input(g, 2),
        (struct tfm_tensor *)g->node->outputs[1], g->dy[0], g->node->attrs.softcap, dweight);
}

const struct tfm__rule tfm__rule_cross_entropy = {.infer = infer, .gradient = gradient};

struct tfm_tensor *tfm_op_cross_entropy(struct tfm_graph *graph, struct tfm_tensor *x,
                                        struct tfm_tensor *weight, struct tfm_tensor *targets,
                                        double softcap, struct tfm_tensor **lse)
{
    struct tfm_tensor *const inputs[] = {x, weight, targets};
    const struct tfm_attrs attrs = {.softcap = softcap};
    struct tfm_tensor *outputs[TFM_MAX_OUTPUTS];

    tfm__graph_append_node(graph, TFM_OP_CROSS_ENTROPY, inputs, 3, &attrs, outputs);
    if (lse)
        *lse = outputs[1];
    return outputs[0];
}
