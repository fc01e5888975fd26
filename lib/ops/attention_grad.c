/* SPDX-License-Identifier: MIT
 * attention_grad: the gradient of gqa_attention without caches (as in Dao et al., arXiv:2205.14135: the
 * probabilities are computed again from lse, tile by tile; no matrix of rows times cells exists)
 *   q, dy [N, H, d], k, v [N, G, d], lse [N, H] F32
 *   rel_bias [buckets, H] F32, rel_bucket [2 M + 1] I32, both or none; state drel_bias [buckets, H] F32, optional
 *   -> dq [N, H, d], dk, dv [N, G, d], delta [N, H]; or everything but rel_bucket F64
 * With the scores, masks and attributes of gqa_attention, for query i and cell c that it sees
 *   P = exp(score - lse_i), dP = dy_i . v_c, delta_i = sum over c of P dP, dS = P (dP - delta_i)
 *   drel_bias[bucket of c - i][h] += dS, through the soft cap dS = dS (1 - (capped / softcap)^2)
 *   dq_i = sum of dS k_c scale, dk_c = sum of dS q_i scale, dv_c = sum of P dy_i
 * dk and dv sum over the H/G heads of a group and the rows that see the cell, row by row. A row whose lse is -inf saw
 * nothing: its gradient is 0. delta is what the sums over rows need of the sums over
 * cells; as an output it is rounded before they use it. */
#include <tfm/grad.h>

#include "lib/ops/attention.h"

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"q",   "k",        "v",          "dy",
                                        "lse", "rel_bias", "rel_bucket", "drel_bias"};
    const struct tfm_tensor *q = node->inputs[0], *k = node->inputs[1];
    const struct tfm_tensor *dy = node->inputs[3], *lse = node->inputs[4];
    const struct tfm_tensor *bias = tfm__op_input(node, 5), *dbias = tfm__op_input(node, 7);
    const enum tfm_status status = tfm__attention_check(node, roles, err);

    if (status != TFM_STATUS_OK)
        return status;
    if (dy->dtype != q->dtype || lse->dtype != q->dtype)
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles,
                              "dy and lse must be of the dtype of q");
    if (!tfm__same_shape(dy, q))
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles, "dy must be like q [N, H, d]");
    if (lse->extent != q->extent || lse->rank != 2 || lse->shape[1] != q->shape[1])
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "lse must be [N, H] for q [N, H, d]");
    if (dbias && (!bias || !tfm__is_sum(dbias, q->dtype) || !tfm__same_shape(dbias, bias)))
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "drel_bias must be a state like rel_bias, of the dtype of q");
    node->attrs.heads = (int32_t)q->shape[1];
    node->attrs.kv_heads = (int32_t)k->shape[1];
    node->attrs.head_dim = (int32_t)q->shape[2];
    tfm__shape_like(&outputs[0], q, q->dtype);
    tfm__shape_like(&outputs[1], k, q->dtype);
    tfm__shape_like(&outputs[2], k, q->dtype);
    tfm__shape_like(&outputs[3], lse, q->dtype);
    return TFM_STATUS_OK;
}

const struct tfm__rule tfm__rule_attention_grad = {.infer = infer};

struct tfm_tensor *tfm_op_attention_grad(struct tfm_graph *graph, struct tfm_tensor *q,
                                         struct tfm_tensor *k, struct tfm_tensor *v,
                                         struct tfm_tensor *dy, struct tfm_tensor *lse,
                                         const struct tfm_attention *config,
                                         struct tfm_tensor *drel_bias, struct tfm_tensor **dk,
                                         struct tfm_tensor **dv)
{
    struct tfm_tensor *const inputs[] = {
        q, k, v, dy, lse, config->rel_bias, config->rel_bucket, drel_bias};
    struct tfm_tensor *outputs[TFM_MAX_OUTPUTS];
    const struct tfm_attrs attrs = {
        .scale = config->scale,
        .bidirectional = config->bidirectional,
        .window = config->window,
        .softcap = config->softcap,
    };

    tfm__graph_append_node(graph, TFM_OP_ATTENTION_GRAD, inputs, 8, &attrs, outputs);
    *dk = outputs[1];
    *dv = outputs[2];
    return outputs[0];
}
