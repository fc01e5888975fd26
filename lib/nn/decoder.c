/* SPDX-License-Identifier: MIT
 * The Llama decoder (Touvron et al., arXiv:2302.13971): embedding, pre-norm blocks, final norm,
 * head on the rows that are asked for. */
#include <tfm/nn.h>

#include "lib/nn/scope.h"

static const struct tfm_nn_decoder_layer plain; /* zero: all F32, no biases */

static struct tfm_nn_block block_config(const struct tfm_nn_decoder *c,
                                        const struct tfm_nn_decoder_layer *layer,
                                        struct tfm_tensor *pos, struct tfm_tensor *table)
{
    return (struct tfm_nn_block){
        .eps = c->eps,
        .attention = {.heads = c->heads,
                      .kv_heads = c->kv_heads,
                      .head_dim = c->head_dim,
                      .q = layer->q,
                      .k = layer->k,
                      .v = layer->v,
                      .o = layer->o,
                      .q_bias = layer->q_bias,
                      .k_bias = layer->k_bias,
                      .v_bias = layer->v_bias,
                      .o_bias = layer->o_bias,
                      .rope_style = c->rope_style,
                      .pos = pos,
                      .rope_table = table,
                      .slots = c->slots,
                      .cells = c->cells,
                      .cache = c->cache},
        .ffn = {.width = c->ffn_width, .gate = layer->gate, .up = layer->up, .down = layer->down},
    };
}

struct tfm_tensor *tfm_nn_decoder(struct tfm_graph *graph, const struct tfm_nn_decoder *config)
{
    struct tfm_tensor *ids = tfm_graph_input(graph, "ids", TFM_DTYPE_I32, 1, (int64_t[]){0});
    struct tfm_tensor *pos = tfm_graph_input(graph, "pos", TFM_DTYPE_I32, 1, (int64_t[]){0});
    struct tfm_tensor *table =
        tfm_graph_buffer(graph, "rope.table", TFM_DTYPE_F32, 3,
                         (int64_t[]){config->positions, config->rope_dims / 2, 2});
    struct tfm_tensor *x =
        tfm_nn_embedding(graph, "token_embd", ids, config->vocab, config->width, config->embedding);

    for (int64_t i = 0; i < config->layers; i++) {
        char name[32];
        const struct tfm_nn_block block =
            block_config(config, config->layer ? &config->layer[i] : &plain, pos, table);
        snprintf(name, sizeof name, "blk.%lld", (long long)i);
        x = tfm_nn_block(graph, name, x, &block);
    }
    x = tfm_op_take_rows(graph, x); /* the norm and the head are row-wise: only sampled rows */
    x = tfm_nn_rms_norm(graph, "output_norm", x, config->eps);
    if (config->tied) {
        struct tfm_tensor *head = tfm_graph_parameter(graph, "token_embd.weight", config->embedding,
                                                      2, (int64_t[]){config->vocab, config->width});
        tfm_graph_scope_push(graph, "linear", "output");
        x = tfm_op_linear(graph, x, head, NULL);
        tfm_graph_scope_pop(graph);
    } else {
        x = tfm_nn_linear(graph, "output", x, config->vocab, config->head, 0);
    }
    return tfm_graph_output(graph, x, "logits");
}
