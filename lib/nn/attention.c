/* SPDX-License-Identifier: MIT
 * Self-attention with a KV cache: o(gqa(rope(q(x)), rope(k(x)), v(x))). MHA has G = H, MQA G = 1.
 */
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

struct tfm_tensor *tfm_nn_attention(struct tfm_graph *graph, const char *name, struct tfm_tensor *x,
                                    const struct tfm_nn_attention *config)
{
    struct tfm__name buffer;
    const int64_t H = config->heads, G = config->kv_heads, d = config->head_dim;
    const int64_t cache[4] = {config->slots, config->cells, G, d};

    if (!x)
        return NULL;
    const int64_t width = x->shape[x->rank - 1];
    tfm_graph_scope_push(graph, "attention", name);
    struct tfm_tensor *q = heads_of(graph, name, "q", x, H, d, config->q, config->q_bias);
    struct tfm_tensor *k = heads_of(graph, name, "k", x, G, d, config->k, config->k_bias);
    struct tfm_tensor *v = heads_of(graph, name, "v", x, G, d, config->v, config->v_bias);
    if (config->rope_table) {
        q = tfm_op_rope(graph, q, config->pos, config->rope_table, config->rope_style);
        k = tfm_op_rope(graph, k, config->pos, config->rope_table, config->rope_style);
    }
    struct tfm_tensor *k_cache =
        tfm_graph_state(graph, tfm__name_join(&buffer, name, "k_cache"), config->cache, 4, cache);
    struct tfm_tensor *v_cache =
        tfm_graph_state(graph, tfm__name_join(&buffer, name, "v_cache"), config->cache, 4, cache);
    struct tfm_tensor *y = tfm_op_gqa_attention(graph, q, k, v, k_cache, v_cache, config->scale);
    y = tfm_graph_reshape(graph, y, 2, (int64_t[]){0, H * d});
    y = tfm_nn_linear(graph, tfm__name_join(&buffer, name, "o"), y, width, config->o,
                      config->o_bias);
    tfm_graph_scope_pop(graph);
    return y;
}
