/* SPDX-License-Identifier: MIT
 * Transformer blocks: two sublayers with residuals, norms before them, after the sum, or on both sides.
 * The order is the whole point (Xiong et al., arXiv:2002.04745). */
#include <tfm/nn.h>

#include "lib/nn/scope.h"

/* The sublayers share a form, so that each kind of block is written once. */
struct sublayer {
    const char *name, *norm, *post_norm;
    struct tfm_tensor *(*append)(struct tfm_graph *graph, const char *name, struct tfm_tensor *x,
                                 const struct tfm_nn_block *config);
};

static struct tfm_tensor *append_attention(struct tfm_graph *graph, const char *name,
                                           struct tfm_tensor *x, const struct tfm_nn_block *config)
{
    return tfm_nn_attention(graph, name, x, &config->attention);
}

static struct tfm_tensor *append_ffn(struct tfm_graph *graph, const char *name,
                                     struct tfm_tensor *x, const struct tfm_nn_block *config)
{
    return tfm_nn_ffn(graph, name, x, &config->ffn);
}

static struct tfm_tensor *norm(struct tfm_graph *graph, const char *name, const char *leaf,
                               struct tfm_tensor *x, const struct tfm_nn_block *config)
{
    const struct tfm_nn_norm how = {.kind = config->norm, .eps = config->eps};
    struct tfm__name buffer;

    return tfm_nn_norm(graph, tfm__name_join(&buffer, name, leaf), x, &how);
}

static struct tfm_tensor *apply(struct tfm_graph *graph, const char *name,
                                const struct sublayer *layer, struct tfm_tensor *x,
                                const struct tfm_nn_block *config)
{
    struct tfm__name buffer;

    return layer->append(graph, tfm__name_join(&buffer, name, layer->name), x, config);
}

static struct tfm_tensor *sum(struct tfm_graph *graph, struct tfm_tensor *x, struct tfm_tensor *h)
{
    return h ? tfm_op_add(graph, x, h) : NULL;
}

/* ---- residual_<kind>: x -> x with what one sublayer adds ---- */

static struct tfm_tensor *residual_pre(struct tfm_graph *graph, const char *name,
                                       const struct sublayer *layer, struct tfm_tensor *x,
                                       const struct tfm_nn_block *config)
{
    struct tfm_tensor *h = norm(graph, name, layer->norm, x, config);

    return sum(graph, x, apply(graph, name, layer, h, config));
}

static struct tfm_tensor *residual_post(struct tfm_graph *graph, const char *name,
                                        const struct sublayer *layer, struct tfm_tensor *x,
                                        const struct tfm_nn_block *config)
{
    struct tfm_tensor *h = sum(graph, x, apply(graph, name, layer, x, config));

    return norm(graph, name, layer->norm, h, config);
}

static struct tfm_tensor *residual_pre_post(struct tfm_graph *graph, const char *name,
                                            const struct sublayer *layer, struct tfm_tensor *x,
                                            const struct tfm_nn_block *config)
{
    struct tfm_tensor *h = norm(graph, name, layer->norm, x, config);

    h = apply(graph, name, layer, h, config);
    return sum(graph, x, norm(graph, name, layer->post_norm, h, config));
}

static const struct {
    const char *scope;
    struct tfm_tensor *(*residual)(struct tfm_graph *graph, const char *name,
                                   const struct sublayer *layer, struct tfm_tensor *x,
                                   const struct tfm_nn_block *config);
} kinds[] = {
#define TFM_NN_BLOCK(id, NAME, name) \
    [TFM_NN_BLOCK_##NAME] = {"block_" #name "_norm", residual_##name},
#include <tfm/nn_kinds.def>
};

struct tfm_tensor *tfm_nn_block(struct tfm_graph *graph, const char *name, struct tfm_tensor *x,
                                const struct tfm_nn_block *config)
{
    static const struct sublayer layers[] = {
        {"attn", "attn_norm", "attn_post_norm", append_attention},
        {"ffn", "ffn_norm", "ffn_post_norm", append_ffn},
    };

    if (!x)
        return NULL;
    if ((unsigned)config->kind >= sizeof kinds / sizeof *kinds)
        return tfm_graph_refuse(graph, TFM_STATUS_INVALID_ARGUMENT, "\"%s\": block %d is none",
                                name, (int)config->kind);
    tfm_graph_scope_push(graph, kinds[config->kind].scope, name);
    for (size_t i = 0; x && i < sizeof layers / sizeof *layers; i++)
        x = kinds[config->kind].residual(graph, name, &layers[i], x, config);
    tfm_graph_scope_pop(graph);
    return x;
}
