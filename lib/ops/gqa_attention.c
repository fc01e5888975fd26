/* SPDX-License-Identifier: MIT
 * gqa_attention: grouped-query attention over a KV cache (Vaswani et al., arXiv:1706.03762;
 * Shazeer, arXiv:1911.02150; Ainslie et al., arXiv:2305.13245) q [N, H, d], k [N, G, d], v [N, G,
 * d] F32, k_cache and v_cache [slots, cells, G, d], both F32 or both F16, state -> [N, H, d]; or
 * everything F64. G divides H: MHA is G = H, MQA is G = 1. d 1..1024. Row i of sequence s has cell
 * p = past[s] + i of slot[s]. First k and v of all rows go to their cells (rounded to the cache's
 * dtype), then with g = h / (H/G): y[h] = sum over the cells c <= p of softmax_c(q[h] .
 * k_cache[c][g] * scale) v_cache[c][g] scale 0 = 1/sqrt(d). K comes rotated. Writing the same rows
 * again overwrites the same cells. Gradient: with P = softmax: dv += P^T dy, dS = P (dy v^T -
 * rowsum(dy y)), dq = dS k scale, dk += dS^T q scale, summed over the H/G heads of a group. */
#include <math.h>

#include "lib/ops/refuse.h"

enum { HEAD_DIM_MAX = 1024 };

static int is_cache(const struct tfm_tensor *cache, const struct tfm_tensor *k)
{
    return cache->kind == TFM_TENSOR_STATE && cache->extent == TFM_EXTENT_FIXED &&
           cache->rank == 4 && cache->shape[0] >= 1 && cache->shape[1] >= 1 &&
           cache->shape[2] == k->shape[1] && cache->shape[3] == k->shape[2];
}

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    static const char *const roles[] = {"q", "k", "v", "k_cache", "v_cache"};
    const struct tfm_tensor *q = node->inputs[0], *k = node->inputs[1], *v = node->inputs[2];
    const struct tfm_tensor *k_cache = node->inputs[3], *v_cache = node->inputs[4];
    const int f64 = q->dtype == TFM_DTYPE_F64;

    if ((q->dtype != TFM_DTYPE_F32 && !f64) || k->dtype != q->dtype || v->dtype != q->dtype)
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles,
                              "q, k and v must all be f32 or all f64");
    if (k_cache->dtype != v_cache->dtype || (f64 != (k_cache->dtype == TFM_DTYPE_F64)) ||
        (!f64 && k_cache->dtype != TFM_DTYPE_F32 && k_cache->dtype != TFM_DTYPE_F16))
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles,
                              "the caches must both be f32 or both f16 (f64 when q is f64)");
    if (q->extent != TFM_EXTENT_ROWS || q->rank != 3 || q->shape[1] < 1)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles, "q must be [N, H, d]");
    if (k->extent != TFM_EXTENT_ROWS || k->rank != 3 || !tfm__same_shape(k, v) ||
        k->shape[2] != q->shape[2] || k->shape[1] < 1)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "k and v must be [N, G, d] of one shape, with the d of q [N, H, d]");
    if (q->shape[1] % k->shape[1] != 0 || q->shape[1] > INT32_MAX)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "H of q [N, H, d] must be a multiple of G of k [N, G, d]");
    if (q->shape[2] < 1 || q->shape[2] > HEAD_DIM_MAX)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles, "d must lie in 1..1024");
    if (!is_cache(k_cache, k) || !is_cache(v_cache, v) || !tfm__same_shape(k_cache, v_cache))
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "the caches must be state [slots, cells, G, d] for k, v [N, G, d]");
    if (k_cache == v_cache)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "k_cache and v_cache must be two tensors");
    if (!isfinite(node->attrs.scale))
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "scale must be finite; 0 = 1/sqrt(d)");

    node->attrs.heads = (int32_t)q->shape[1];
    node->attrs.kv_heads = (int32_t)k->shape[1];
    node->attrs.head_dim = (int32_t)q->shape[2];
    tfm__shape_like(&outputs[0], q, q->dtype);
    return TFM_STATUS_OK;
}

const struct tfm__rule tfm__rule_gqa_attention = {.infer = infer};

struct tfm_tensor *tfm_op_gqa_attention(struct tfm_graph *graph, struct tfm_tensor *q,
                                        struct tfm_tensor *k, struct tfm_tensor *v,
                                        struct tfm_tensor *k_cache, struct tfm_tensor *v_cache,
                                        double scale)
{
    struct tfm_tensor *const inputs[] = {q, k, v, k_cache, v_cache};
    const struct tfm_attrs attrs = {.scale = scale};
    return tfm__graph_append(graph, TFM_OP_GQA_ATTENTION, inputs, 5, &attrs);
}
