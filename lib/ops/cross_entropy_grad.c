/* SPDX-License-Identifier: MIT
 * cross_entropy_grad: the gradient of cross_entropy by x and by the weight, from logits that are computed again
 *   x [N, D] F32, weight [V, D] any float (not F64) or block dtype, targets [N] I32 in [0, V) or -1 = none,
 *   lse, dloss [N] F32, state dweight [V, D] F32, optional -> dx [N, D] F32; or everything F64
 *   g_nv = dloss_n (exp(logit_nv - lse_n) - [v = target_n]), 0 for a row without a target
 *   logit_nv = x_n . weight_v, with a soft cap S > 0 S tanh(x_n . weight_v / S) and g times 1 - (logit / S)^2
 *   dx = g weight, dweight += g^T x */
#include <tfm/grad.h>

#include "lib/ops/cross_entropy.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"x", "weight", "targets", "lse", "dloss", "dweight"};
    const struct tfm_tensor *x = node->inputs[0], *weight = node->inputs[1];
    const struct tfm_tensor *dweight = tfm__op_input(node, 5);
    const enum tfm_status status = tfm__cross_entropy_check(node, roles, err);

    if (status != TFM_STATUS_OK)
        return status;
    for (int i = 3; i < 5; i++) {
        const struct tfm_tensor *t = node->inputs[i];
        if (t->dtype != x->dtype)
            return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles,
                                  "lse and dloss must be of the dtype of x");
        if (t->rank != 1 || t->extent != x->extent)
            return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                                  "lse and dloss must be [N] for x [N, D]");
    }
    if (dweight && !(tfm__is_sum(dweight, x->dtype) && tfm__same_shape(dweight, weight)))
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "dweight must be a state [V, D] of the dtype of x");
    tfm__shape_like(&outputs[0], x, x->dtype);
    return TFM_STATUS_OK;
}

const struct tfm__rule tfm__rule_cross_entropy_grad = {.infer = infer};

struct tfm_tensor *tfm_op_cross_entropy_grad(struct tfm_graph *graph, struct tfm_tensor *x,
                                             struct tfm_tensor *weight, struct tfm_tensor *targets,
                                             struct tfm_tensor *lse, struct tfm_tensor *dloss,
                                             double softcap, struct tfm_tensor *dweight)
{
    struct tfm_tensor *const inputs[] = {x, weight, targets, lse, dloss, dweight};
    const struct tfm_attrs attrs = {.softcap = softcap};

    return tfm__graph_append(graph, TFM_OP_CROSS_ENTROPY_GRAD, inputs, 6, &attrs);
}
