/* SPDX-License-Identifier: MIT
 * Self-attention: o(gqa(rope(norm(q(x))), rope(norm(k(x))), v(x))), with or without a KV cache. MHA has
 * G = H, MQA G = 1. */
#include <tfm/nn.h>

#include "lib/nn/scope.h"

/* A projection and its view by heads: x [N, D] -> [N, heads, d]. */
static struct tfm_tensor *heads_of(struct tfm_graph *graph, const char *name, const char *leaf,
                                   struct tfm_tensor *x, int64_t heads, int64_t head_dim,
                                   enum tfm_dtype dtype, int bias)
{
    struct tfm__name buffer;
    struct tfm_tensor *y =
        tfm_nn_linear(graph, tfm__name_join(&buffer, name, leaf), x, heads * head_dim, dtype, bias);
    return tfm_graph_reshape(graph, y, 3, (int64_t[]){0, heads, head_dim});
}

/* What the scores are made of is q or k, normed by heads and rotated, if asked. */
static struct tfm_tensor *finish(struct tfm_graph *graph, const char *name, const char *leaf,
                                 struct tfm_tensor *x, int norm,
                                 const struct tfm_nn_attention *config)
{
    struct tfm__name buffer;

    if (norm)
        x = tfm_nn_rms_norm(graph, tfm__name_join(&buffer, name, leaf), x, config->qk_norm_eps);
    if (x && config->rope_table)
        x = tfm_op_rope(graph, x, config->pos, config->rope_table, config->rope_style);
    return x;
}

static int in_range(int64_t value)
{
    return value >= 1 && value <= INT32_MAX;
}

static struct tfm_tensor *attend(struct tfm_graph *graph, const char *name, struct tfm_tensor *x,
                                 const struct tfm_nn_attention *config)
{
    struct tfm__name buffer;
    const int64_t H = config->heads, G = config->kv_heads, d = config->head_dim;
    const int64_t cache[4] = {config->slots, config->cells, G, d};
    struct tfm_attention attention = {
        .scale = config->scale,
        .bidirectional = config->bidirectional,
        .window = (int)config->window,
        .softcap = config->softcap,
        .rel_bias = config->rel_bias,
        .rel_bucket = config->rel_bucket,
    };

    struct tfm_tensor *q = heads_of(graph, name, "q", x, H, d, config->q, config->q_bias);
    struct tfm_tensor *k = heads_of(graph, name, "k", x, G, d, config->k, config->k_bias);
    struct tfm_tensor *v = heads_of(graph, name, "v", x, G, d, config->v, config->v_bias);
    q = finish(graph, name, "q_norm", q, config->q_norm, config);
    k = finish(graph, name, "k_norm", k, config->k_norm, config);
    if (config->slots || config->cells) {
        attention.k_cache = tfm_graph_state(graph, tfm__name_join(&buffer, name, "k_cache"),
                                            config->cache, 4, cache);
        attention.v_cache = tfm_graph_state(graph, tfm__name_join(&buffer, name, "v_cache"),
                                            config->cache, 4, cache);
    }
    struct tfm_tensor *y = tfm_op_attention(graph, q, k, v, &attention);
    return tfm_graph_reshape(graph, y, 2, (int64_t[]){0, H * d});
}

struct tfm_tensor *tfm_nn_attention(struct tfm_graph *graph, const char *name, struct tfm_tensor *x,
                                    const struct tfm_nn_attention *config)
{
    struct tfm__name buffer;
    struct tfm_tensor *y = NULL;

    if (!x)
        return NULL;
    const int64_t width = x->shape[x->rank - 1];
    tfm_graph_scope_push(graph, "attention", name);
    if (!in_range(config->heads) || !in_range(config->kv_heads) || !in_range(config->head_dim))
        tfm_graph_refuse(graph, TFM_STATUS_SHAPE,
                         "attention: %lld heads, %lld kv heads of %lld elements; each must be in "
                         "1..2^31-1",
                         (long long)config->heads, (long long)config->kv_heads,
                         (long long)config->head_dim);
    else if (config->window < 0 || config->window > INT32_MAX)
        tfm_graph_refuse(graph, TFM_STATUS_INVALID_ARGUMENT,
                         "attention: a window of %lld; it must be in 0..2^31-1",
                         (long long)config->window);
    else
        y = attend(graph, name, x, config);
    y = tfm_nn_linear(graph, tfm__name_join(&buffer, name, "o"), y, width, config->o,
                      config->o_bias);
    tfm_graph_scope_pop(graph);
    return y;
}
