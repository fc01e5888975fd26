/* SPDX-License-Identifier: MIT
 * A whole stack: embedding, positions, blocks, final norm, head on the rows that are asked for. Zeroed
 * it is the Llama decoder (Touvron et al., arXiv:2302.13971). */
#include <tfm/nn.h>

#include "lib/nn/scope.h"

/* What the kinds of positions leave for the blocks. */
struct positions {
    struct tfm_tensor *pos, *rope_table, *rel_bias, *rel_bucket;
};

static enum tfm_dtype activation(const struct tfm_nn_decoder *c)
{
    return tfm__companion_of(c->embedding);
}

/* ---- position_<kind>: x -> x with positions; or what attention needs of them ---- */

static struct tfm_tensor *declare_pos(struct tfm_graph *graph)
{
    return tfm_graph_input(graph, "pos", TFM_DTYPE_I32, 1, (int64_t[]){0});
}

static struct tfm_tensor *position_rope(struct tfm_graph *graph, const struct tfm_nn_decoder *c,
                                        struct tfm_tensor *x, struct positions *p)
{
    struct tfm_nn_rope rope = c->rope;
    const int64_t dims = c->rope_dims ? c->rope_dims : c->head_dim;

    if (rope.dims && rope.dims != dims)
        return tfm_graph_refuse(graph, TFM_STATUS_INVALID_ARGUMENT,
                                "decoder: rope_dims is %lld, but rope.dims is %lld",
                                (long long)dims, (long long)rope.dims);
    rope.dims = dims;
    p->pos = declare_pos(graph);
    p->rope_table = tfm_nn_rope_buffer(graph, "rope", activation(c), c->positions, &rope);
    return p->rope_table ? x : NULL;
}

static struct tfm_tensor *position_none(struct tfm_graph *graph, const struct tfm_nn_decoder *c,
                                        struct tfm_tensor *x, struct positions *p)
{
    (void)graph, (void)c, (void)p;
    return x;
}

static struct tfm_tensor *position_sinusoidal(struct tfm_graph *graph,
                                              const struct tfm_nn_decoder *c, struct tfm_tensor *x,
                                              struct positions *p)
{
    p->pos = declare_pos(graph);
    return tfm_nn_sinusoidal_positions(graph, "pos_embd", x, p->pos, c->positions);
}

static struct tfm_tensor *position_learned(struct tfm_graph *graph, const struct tfm_nn_decoder *c,
                                           struct tfm_tensor *x, struct positions *p)
{
    p->pos = declare_pos(graph);
    return tfm_nn_learned_positions(graph, "pos_embd", x, p->pos, c->positions, c->position_weight);
}

static struct tfm_tensor *position_relative(struct tfm_graph *graph, const struct tfm_nn_decoder *c,
                                            struct tfm_tensor *x, struct positions *p)
{
    struct tfm_nn_relative relative = c->relative;

    relative.bidirectional = c->bidirectional;
    return tfm_nn_relative_bias(graph, "rel_pos", activation(c), c->heads, &relative, &p->rel_bias,
                                &p->rel_bucket)
               ? NULL
               : x;
}

static struct tfm_tensor *add_positions(struct tfm_graph *graph, const struct tfm_nn_decoder *c,
                                        struct tfm_tensor *x, struct positions *p)
{
    static struct tfm_tensor *(*const kinds[])(struct tfm_graph *, const struct tfm_nn_decoder *,
                                               struct tfm_tensor *, struct positions *) = {
#define TFM_NN_POSITION(id, NAME, name) [TFM_NN_POSITION_##NAME] = position_##name,
#include <tfm/nn_kinds.def>
    };

    if (!x)
        return NULL;
    if ((unsigned)c->position >= sizeof kinds / sizeof *kinds)
        return tfm_graph_refuse(graph, TFM_STATUS_INVALID_ARGUMENT, "decoder: position %d is none",
                                (int)c->position);
    return kinds[c->position](graph, c, x, p);
}

static struct tfm_nn_block block_config(const struct tfm_nn_decoder *c,
                                        const struct tfm_nn_decoder_layer *layer,
                                        const struct positions *p)
{
    return (struct tfm_nn_block){
        .kind = c->block,
        .norm = c->norm,
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
                      .scale = c->scale,
                      .rope_style = c->rope_style,
                      .pos = p->pos,
                      .rope_table = p->rope_table,
                      .slots = c->slots,
                      .cells = c->cells,
                      .cache = c->cache,
                      .q_norm = c->qk_norm,
                      .k_norm = c->qk_norm,
                      .qk_norm_eps = c->eps,
                      .bidirectional = c->bidirectional,
                      .window = layer->window,
                      .softcap = c->softcap,
                      .rel_bias = p->rel_bias,
                      .rel_bucket = p->rel_bucket},
        .ffn = {.kind = c->ffn,
                .width = c->ffn_width,
                .gate = layer->gate,
                .up = layer->up,
                .down = layer->down,
                .gate_bias = layer->gate_bias,
                .up_bias = layer->up_bias,
                .down_bias = layer->down_bias},
    };
}

/* The weight of the head [V, D]: the embedding table, or one of its own. */
static struct tfm_tensor *head_weight(struct tfm_graph *graph, const struct tfm_nn_decoder *c)
{
    const int64_t shape[] = {c->vocab, c->width};

    return c->tied ? tfm_graph_parameter(graph, "token_embd.weight", c->embedding, 2, shape)
                   : tfm_graph_parameter(graph, "output.weight", c->head, 2, shape);
}

/* [R, D] -> logits [R, V] */
static struct tfm_tensor *head(struct tfm_graph *graph, const struct tfm_nn_decoder *c,
                               struct tfm_tensor *x)
{
    tfm_graph_scope_push(graph, "linear", "output");
    x = x ? tfm_op_linear(graph, x, head_weight(graph, c), NULL) : NULL;
    tfm_graph_scope_pop(graph);
    if (c->logit_softcap != 0)
        x = tfm_nn_softcap(graph, "output_softcap", x, c->logit_softcap);
    return x;
}

/* [R, D] -> loss [R] */
static struct tfm_tensor *loss(struct tfm_graph *graph, const struct tfm_nn_decoder *c,
                               struct tfm_tensor *x)
{
    struct tfm_tensor *targets =
        tfm_graph_input(graph, "targets", TFM_DTYPE_I32, 1, (int64_t[]){0});

    tfm_graph_scope_push(graph, "linear", "output");
    x = x ? tfm_op_cross_entropy(graph, x, head_weight(graph, c), targets, c->logit_softcap, NULL)
          : NULL;
    tfm_graph_scope_pop(graph);
    return x;
}

/* ids -> [N, D] behind the last block */
static struct tfm_tensor *blocks(struct tfm_graph *graph, const struct tfm_nn_decoder *c)
{
    struct positions positions = {0};
    struct tfm_tensor *ids = tfm_graph_input(graph, "ids", TFM_DTYPE_I32, 1, (int64_t[]){0});
    struct tfm_tensor *x =
        tfm_nn_embedding(graph, "token_embd", ids, c->vocab, c->width, c->embedding);

    if (x && c->embedding_scale != 0)
        x = tfm_op_scale(graph, x, c->embedding_scale);
    x = add_positions(graph, c, x, &positions);
    for (int64_t i = 0; x && i < c->layers; i++) {
        char name[32];
        const struct tfm_nn_block block =
            block_config(c, c->layer ? &c->layer[i] : &c->each, &positions);
        snprintf(name, sizeof name, "blk.%lld", (long long)i);
        x = tfm_nn_block(graph, name, x, &block);
    }
    return x;
}

static struct tfm_tensor *final_norm(struct tfm_graph *graph, const struct tfm_nn_decoder *c,
                                     struct tfm_tensor *x)
{
    const struct tfm_nn_norm norm = {.kind = c->norm, .eps = c->eps};

    return x && !c->no_final_norm ? tfm_nn_norm(graph, "output_norm", x, &norm) : x;
}

struct tfm_tensor *tfm_nn_decoder(struct tfm_graph *graph, const struct tfm_nn_decoder *config)
{
    struct tfm_tensor *x = blocks(graph, config);

    /* the norm and the head are row-wise: only sampled rows */
    x = final_norm(graph, config, x ? tfm_op_take_rows(graph, x) : NULL);
    return tfm_graph_output(graph, head(graph, config, x), "logits");
}

struct tfm_tensor *tfm_nn_decoder_loss(struct tfm_graph *graph, const struct tfm_nn_decoder *config)
{
    struct tfm_tensor *x = final_norm(graph, config, blocks(graph, config));

    return tfm_graph_output(graph, loss(graph, config, x), "loss");
}
