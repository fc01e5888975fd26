/* SPDX-License-Identifier: MIT
 * gqa_attention: grouped-query attention, with or without a KV cache (Vaswani et al.,
 * arXiv:1706.03762; Shazeer, arXiv:1911.02150; Ainslie et al., arXiv:2305.13245)
 *   q [N, H, d], k [N, G, d], v [N, G, d] F32
 *   k_cache, v_cache [slots, cells, G, d], both F32 or both F16, state, both or none
 *   rel_bias [buckets, H] F32, rel_bucket [2 M + 1] I32, a buffer of values in [0, buckets), both or none
 *   -> [N, H, d], and without caches, if extra_outputs is 1, lse [N, H]; or everything but rel_bucket F64
 * G divides H: MHA is G = H, MQA is G = 1. d 1..1024. Row i of sequence s has position p = past[s] + i.
 * With caches, k and v of all rows first go to their cells, cell p of slot[s] (rounded to the cache's
 * dtype); writing the same rows again overwrites the same cells. Without them past[s] is 0 and cell p is
 * row i itself. Then with g = h / (H/G) (K comes rotated)
 *   score_c = q[h] . k_c[g] scale                                 scale 0 = 1/sqrt(d)
 *   score_c = softcap tanh(score_c / softcap)                     if softcap > 0 (arXiv:2408.00118)
 *   score_c = score_c + rel_bias[rel_bucket[clamp(c - p, -M, M) + M]][h]         (arXiv:1910.10683)
 *   y[h] = sum over the cells that p sees of softmax_c(score) v_c[g]
 * p sees the cells c <= p, bidirectional all c < past[s] + rows of s; with a window > 0 (Beltagy et al.,
 * arXiv:2004.05150) only those with |c - p| < window. A row all of whose scores are -inf gives 0, and so
 * does one that sees nothing. lse = log of the sum of exp(score), -inf for such a row.
 * Gradient: with P = softmax: dv += P^T dy, dS = P (dy v^T - rowsum(dy y)), d rel_bias[its bucket] += dS,
 * through the cap dS (1 - (capped / softcap)^2), then dq = dS k scale, dk += dS^T q scale, summed over the
 * H/G heads of a group. A row that gives 0 has gradient 0. With caches there is none: past runs are gone. */
#include <math.h>

#include <tfm/grad.h>

#include "lib/ops/attention.h"

enum { HEAD_DIM_MAX = 1024 };

static const char *const roles[] = {"q", "k", "v", "k_cache", "v_cache", "rel_bias", "rel_bucket"};

static const struct tfm_tensor *input(const struct tfm_node *node, uint32_t i)
{
    return i < node->n_inputs ? node->inputs[i] : NULL;
}

static enum tfm_status check_heads(const struct tfm_node *node, const char *const *roles,
                                   struct tfm_error *err)
{
    const struct tfm_tensor *q = node->inputs[0], *k = node->inputs[1], *v = node->inputs[2];

    if ((q->dtype != TFM_DTYPE_F32 && q->dtype != TFM_DTYPE_F64) || k->dtype != q->dtype ||
        v->dtype != q->dtype)
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles,
                              "q, k and v must all be f32 or all f64");
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
    return TFM_STATUS_OK;
}

static int is_cache(const struct tfm_tensor *cache, const struct tfm_tensor *k)
{
    return cache->kind == TFM_TENSOR_STATE && cache->extent == TFM_EXTENT_FIXED &&
           cache->rank == 4 && cache->shape[0] >= 1 && cache->shape[1] >= 1 &&
           cache->shape[2] == k->shape[1] && cache->shape[3] == k->shape[2];
}

static enum tfm_status check_caches(const struct tfm_node *node, struct tfm_error *err)
{
    const struct tfm_tensor *k = node->inputs[1], *v = node->inputs[2];
    const struct tfm_tensor *k_cache = input(node, 3), *v_cache = input(node, 4);
    const int f64 = k->dtype == TFM_DTYPE_F64;

    if (!k_cache && !v_cache)
        return TFM_STATUS_OK;
    if (!k_cache || !v_cache)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "k_cache and v_cache come together or not at all");
    if (k_cache->dtype != v_cache->dtype || (f64 != (k_cache->dtype == TFM_DTYPE_F64)) ||
        (!f64 && k_cache->dtype != TFM_DTYPE_F32 && k_cache->dtype != TFM_DTYPE_F16))
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles,
                              "the caches must both be f32 or both f16 (f64 when q is f64)");
    if (!is_cache(k_cache, k) || !is_cache(v_cache, v) || !tfm__same_shape(k_cache, v_cache))
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "the caches must be state [slots, cells, G, d] for k, v [N, G, d]");
    if (k_cache == v_cache)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "k_cache and v_cache must be two tensors");
    return TFM_STATUS_OK;
}

static enum tfm_status check_bias(const struct tfm_node *node, const char *const *roles,
                                  struct tfm_error *err)
{
    const struct tfm_tensor *q = node->inputs[0];
    const struct tfm_tensor *bias = input(node, 5), *bucket = input(node, 6);

    if (!bias && !bucket)
        return TFM_STATUS_OK;
    if (!bias || !bucket)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "rel_bias and rel_bucket come together or not at all");
    if (bias->dtype != q->dtype || bucket->dtype != TFM_DTYPE_I32)
        return tfm__op_refuse(err, TFM_STATUS_DTYPE, node, roles,
                              "rel_bias must be of the dtype of q and rel_bucket i32");
    if (!tfm__is_constant(bias) || bias->rank != 2 || bias->shape[1] != q->shape[1])
        return tfm__op_refuse(
            err, TFM_STATUS_SHAPE, node, roles,
            "rel_bias must be a parameter or buffer [buckets, H] for q [N, H, d]");
    if (!tfm__is_constant(bucket) || bucket->rank != 1 || bucket->shape[0] % 2 != 1 ||
        bucket->shape[0] > INT32_MAX)
        return tfm__op_refuse(err, TFM_STATUS_SHAPE, node, roles,
                              "rel_bucket must be a buffer [2 M + 1]: distances -M to M");
    tfm__tensor_limit(bucket, bias->shape[0]);
    return TFM_STATUS_OK;
}

static enum tfm_status check_attributes(const struct tfm_node *node, const char *const *roles,
                                        struct tfm_error *err)
{
    const struct tfm_attrs *attrs = &node->attrs;

    if (!isfinite(attrs->scale))
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "scale must be finite; 0 = 1/sqrt(d)");
    if (!isfinite(attrs->softcap) || attrs->softcap < 0)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "softcap must be finite and positive; 0 = off");
    if (attrs->window < 0)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "window must be positive; 0 = every cell");
    if (attrs->bidirectional != 0 && attrs->bidirectional != 1)
        return tfm__op_refuse(err, TFM_STATUS_INVALID_ARGUMENT, node, roles,
                              "bidirectional must be 0 (causal) or 1");
    return TFM_STATUS_OK;
}

enum tfm_status tfm__attention_check(const struct tfm_node *node, const char *const *names,
                                     struct tfm_error *err)
{
    enum tfm_status status = check_heads(node, names, err);

    if (status == TFM_STATUS_OK)
        status = check_attributes(node, names, err);
    if (status == TFM_STATUS_OK)
        status = check_bias(node, names, err);
    return status;
}

static enum tfm_status infer(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err)
{
    const struct tfm_tensor *q = node->inputs[0], *k = node->inputs[1];
    enum tfm_status status = tfm__attention_check(node, roles, err);

    if (status == TFM_STATUS_OK)
        status = check_caches(node, err);
    if (status != TFM_STATUS_OK)
        return status;
    if (node->attrs.extra_outputs && input(node, 3))
        return tfm__op_refuse(err, TFM_STATUS_UNSUPPORTED, node, roles,
                              "lse is there without caches only");
    node->n_outputs = node->attrs.extra_outputs ? 2 : 1;
    node->attrs.heads = (int32_t)q->shape[1];
    node->attrs.kv_heads = (int32_t)k->shape[1];
    node->attrs.head_dim = (int32_t)q->shape[2];
    tfm__shape_like(&outputs[0], q, q->dtype);
    if (node->n_outputs > 1) {
        tfm__shape_like(&outputs[1], q, q->dtype);
        outputs[1].rank = 2;
    }
    return TFM_STATUS_OK;
}

static void gradient(struct tfm__gradient *g)
{
    const struct tfm_attrs *attrs = &g->node->attrs;
    const struct tfm_attention config = {
        .scale = attrs->scale,
        .bidirectional = attrs->bidirectional,
        .window = attrs->window,
        .softcap = attrs->softcap,
        .rel_bias = tfm__gradient_input(g, 5),
        .rel_bucket = tfm__gradient_input(g, 6),
    };

    if (tfm__gradient_input(g, 3)) {
        tfm_graph_refuse(g->graph, TFM_STATUS_UNSUPPORTED,
                         "gqa_attention: with caches it has no gradient, since the rows of earlier "
                         "runs are gone; train without caches");
        return;
    }
    if (g->dy[1]) {
        tfm_graph_refuse(g->graph, TFM_STATUS_UNSUPPORTED,
                         "gqa_attention: lse has no gradient; only its first output has");
        return;
    }
    struct tfm_tensor *lse = tfm__gradient_output(g, 1), *dbias = tfm__gradient_state(g, 5);
    g->dx[0] = tfm_op_attention_grad(g->graph, tfm__gradient_input(g, 0), tfm__gradient_input(g, 1),
                                     tfm__gradient_input(g, 2), g->dy[0], lse, &config, dbias,
                                     &g->dx[1], &g->dx[2]);
}

const struct tfm__rule tfm__rule_gqa_attention = {.infer = infer, .gradient = gradient};

struct tfm_tensor *tfm_op_attention(struct tfm_graph *graph, struct tfm_tensor *q,
                                    struct tfm_tensor *k, struct tfm_tensor *v,
                                    const struct tfm_attention *config)
{
    struct tfm_tensor *const inputs[] = {
        q, k, v, config->k_cache, config->v_cache, config->rel_bias, config->rel_bucket};
    struct tfm_tensor *outputs[TFM_MAX_OUTPUTS];
    const struct tfm_attrs attrs = {
        .scale = config->scale,
        .bidirectional = config->bidirectional,
        .window = config->window,
        .softcap = config->softcap,
        .extra_outputs = config->lse != NULL,
    };

    tfm__graph_append_node(graph, TFM_OP_GQA_ATTENTION, inputs, 7, &attrs, outputs);
    if (config->lse)
        *config->lse = outputs[1];
    return outputs[0];
}

struct tfm_tensor *tfm_op_gqa_attention(struct tfm_graph *graph, struct tfm_tensor *q,
                                        struct tfm_tensor *k, struct tfm_tensor *v,
                                        struct tfm_tensor *k_cache, struct tfm_tensor *v_cache,
                                        double scale)
{
    const struct tfm_attention config = {.scale = scale, .k_cache = k_cache, .v_cache = v_cache};

    return tfm_op_attention(graph, q, k, v, &config);
}
