/* SPDX-License-Identifier: MIT
 * The layers of the golden cases, built through the public functions. Shapes, dtypes and biases follow from
 * the tensors of a case, the rest from its settings. */
#include <stdio.h>
#include <string.h>

#include "tests/golden/torch_case.h"

/* Index of a kind by its word, as in tfm/nn_kinds.def; -1, which every layer refuses, when it is none. */
static int word_index(const char *const *words, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (words[i] && strcmp(words[i], word) == 0)
            return (int)i;
    return -1;
}

#define KIND(words, word) word_index(words, sizeof(words) / sizeof *(words), word)

static const char *const norm_words[] = {
#define TFM_NN_NORM(id, NAME, name) [id] = #name,
#include <tfm/nn_kinds.def>
};
static const char *const ffn_words[] = {
#define TFM_NN_FFN(id, NAME, name, gated) [id] = #name,
#include <tfm/nn_kinds.def>
};
static const char *const position_words[] = {
#define TFM_NN_POSITION(id, NAME, name) [id] = #name,
#include <tfm/nn_kinds.def>
};
static const char *const scaling_words[] = {
#define TFM_NN_ROPE_SCALING(id, NAME, name) [id] = #name,
#include <tfm/nn_kinds.def>
};
static const char *const block_words[] = {
#define TFM_NN_BLOCK(id, NAME, name) [id] = #name,
#include <tfm/nn_kinds.def>
};

/* ---- what the tensors of a case say ---- */

static struct tfm_tensor *input(struct tfm_graph *graph, const struct torch_case *c,
                                const char *name)
{
    const struct torch_tensor *t = torch_tensor(c, name);

    return t && t->is_input ? tfm_graph_input(graph, name, t->dtype, t->array.rank, t->array.shape)
                            : NULL;
}

static const struct torch_tensor *below(const struct torch_case *c, const char *scope,
                                        const char *leaf)
{
    char name[128];

    snprintf(name, sizeof name, "%s.%s", scope, leaf);
    return torch_tensor(c, name);
}

static enum tfm_dtype dtype_of(const struct torch_case *c, const char *scope, const char *leaf)
{
    const struct torch_tensor *t = below(c, scope, leaf);

    return t ? t->dtype : TFM_DTYPE_F32;
}

static int has(const struct torch_case *c, const char *scope, const char *leaf)
{
    return below(c, scope, leaf) != NULL;
}

static int64_t extent(const struct torch_case *c, const char *scope, const char *leaf, int i)
{
    const struct torch_tensor *t = below(c, scope, leaf);

    return t && i < t->array.rank ? t->array.shape[i] : 0;
}

/* F64 beside F64 activations. */
static enum tfm_dtype table_dtype(const struct torch_case *c)
{
    return c->dtype == TFM_DTYPE_F64 ? TFM_DTYPE_F64 : TFM_DTYPE_F32;
}

/* ---- one function a layer ---- */

static struct tfm_tensor *build_linear(struct tfm_graph *graph, const struct torch_case *c)
{
    return tfm_nn_linear(graph, "layer", input(graph, c, "x"), extent(c, "layer", "weight", 0),
                         dtype_of(c, "layer", "weight"), has(c, "layer", "bias"));
}

static struct tfm_tensor *build_embedding(struct tfm_graph *graph, const struct torch_case *c)
{
    return tfm_nn_embedding(graph, "layer", input(graph, c, "ids"), extent(c, "layer", "weight", 0),
                            extent(c, "layer", "weight", 1), dtype_of(c, "layer", "weight"));
}

static struct tfm_tensor *build_norm(struct tfm_graph *graph, const struct torch_case *c)
{
    const struct tfm_nn_norm config = {
        .kind = (enum tfm_nn_norm_kind)KIND(norm_words, torch_word(c, "kind")),
        .eps = torch_number(c, "eps", -1),
    };

    return tfm_nn_norm(graph, "layer", input(graph, c, "x"), &config);
}

static struct tfm_tensor *gelu_erf(struct tfm_graph *graph, struct tfm_tensor *x)
{
    return tfm_op_gelu(graph, x, 0);
}

static struct tfm_tensor *gelu_tanh(struct tfm_graph *graph, struct tfm_tensor *x)
{
    return tfm_op_gelu(graph, x, 1);
}

static struct tfm_tensor *build_unary(struct tfm_graph *graph, const struct torch_case *c)
{
    static const struct {
        const char *word;
        struct tfm_tensor *(*op)(struct tfm_graph *graph, struct tfm_tensor *x);
    } ops[] = {
        {"relu", tfm_op_relu}, {"silu", tfm_op_silu}, {"gelu", gelu_erf}, {"gelu_tanh", gelu_tanh}};
    struct tfm_tensor *x = input(graph, c, "x");

    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(ops[i].word, torch_word(c, "op")) == 0)
            return ops[i].op(graph, x);
    return strcmp(torch_word(c, "op"), "scale") == 0
               ? tfm_op_scale(graph, x, torch_number(c, "factor", 0))
               : NULL;
}

static struct tfm_tensor *build_binary(struct tfm_graph *graph, const struct torch_case *c)
{
    static const struct {
        const char *word;
        struct tfm_tensor *(*op)(struct tfm_graph *graph, struct tfm_tensor *a,
                                 struct tfm_tensor *b);
    } ops[] = {
        {"add", tfm_op_add}, {"mul", tfm_op_mul}, {"glu", tfm_op_glu}, {"swiglu", tfm_op_swiglu}};
    struct tfm_tensor *a = input(graph, c, "a"), *b = input(graph, c, "b");

    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(ops[i].word, torch_word(c, "op")) == 0)
            return ops[i].op(graph, a, b);
    return NULL;
}

static struct tfm_nn_ffn ffn_config(const struct torch_case *c, const char *name, const char *kind)
{
    char part[3][64];

    snprintf(part[0], sizeof part[0], "%s.gate", name);
    snprintf(part[1], sizeof part[1], "%s.up", name);
    snprintf(part[2], sizeof part[2], "%s.down", name);
    return (struct tfm_nn_ffn){
        .kind = (enum tfm_nn_ffn_kind)KIND(ffn_words, kind),
        .width = extent(c, part[1], "weight", 0),
        .gate = dtype_of(c, part[0], "weight"),
        .up = dtype_of(c, part[1], "weight"),
        .down = dtype_of(c, part[2], "weight"),
        .gate_bias = has(c, part[0], "bias"),
        .up_bias = has(c, part[1], "bias"),
        .down_bias = has(c, part[2], "bias"),
    };
}

static struct tfm_tensor *build_ffn(struct tfm_graph *graph, const struct torch_case *c)
{
    const struct tfm_nn_ffn config = ffn_config(c, "layer", torch_word(c, "kind"));

    return tfm_nn_ffn(graph, "layer", input(graph, c, "x"), &config);
}

enum { FACTORS = 8 };

static struct tfm_nn_rope rope_config(const struct torch_case *c, float factors[FACTORS])
{
    const json_t *list = json_object_get(c->set, "factors");
    const char *scaling = torch_word(c, "scaling");

    for (size_t i = 0; i < FACTORS && i < json_array_size(list); i++)
        factors[i] = (float)json_number_value(json_array_get(list, i));
    return (struct tfm_nn_rope){
        .dims = torch_integer(c, "dims", 0),
        .theta = torch_number(c, "theta", 0),
        .scaling = (enum tfm_nn_rope_scaling)KIND(scaling_words, *scaling ? scaling : "none"),
        .factor = torch_number(c, "factor", 0),
        .original_context = torch_integer(c, "original_context", 0),
        .attn_factor = torch_number(c, "attn_factor", 0),
        .factors = list ? factors : NULL,
    };
}

static enum tfm_rope_style rope_style(const struct torch_case *c)
{
    return strcmp(torch_word(c, "style"), "halves") == 0 ? TFM_ROPE_HALVES : TFM_ROPE_ADJACENT;
}

static struct tfm_tensor *build_rope(struct tfm_graph *graph, const struct torch_case *c)
{
    float factors[FACTORS] = {0};
    const struct tfm_nn_rope rope = rope_config(c, factors);
    const struct torch_tensor *pos = torch_tensor(c, "pos");
    struct tfm_tensor *x = input(graph, c, "x");
    struct tfm_tensor *at = pos && !pos->is_input
                                ? tfm_graph_buffer(graph, "pos", pos->dtype, 1, pos->array.shape)
                                : input(graph, c, "pos");
    struct tfm_tensor *table =
        tfm_nn_rope_buffer(graph, "rope", table_dtype(c), torch_integer(c, "positions", 0), &rope);

    return tfm_op_rope_layout(graph, x, at, table, rope_style(c),
                              (enum tfm_rope_layout)torch_integer(c, "layout", 0));
}

/* ---- attention ---- */

/* Slots and cells that the runs of a case touch. */
static void cache_size(const struct torch_case *c, int64_t *slots, int64_t *cells)
{
    *slots = *cells = 0;
    for (size_t r = 0; r < json_array_size(c->runs); r++) {
        const json_t *run = json_array_get(c->runs, r);
        for (size_t s = 0; s < json_array_size(run); s++) {
            json_int_t slot, past, n;
            if (json_unpack(json_array_get(run, s), "[I, I, I]", &slot, &past, &n))
                return;
            *slots = slot + 1 > *slots ? slot + 1 : *slots;
            *cells = past + n > *cells ? past + n : *cells;
        }
    }
}

static int cache_dtype(const struct torch_case *c, enum tfm_dtype *dtype)
{
    const char *word = torch_word(c, "cache");

    *dtype = strcmp(word, "f16") == 0   ? TFM_DTYPE_F16
             : strcmp(word, "f64") == 0 ? TFM_DTYPE_F64
                                        : TFM_DTYPE_F32;
    return *word && strcmp(word, "none") != 0;
}

static struct tfm_nn_relative relative_config(const struct torch_case *c)
{
    return (struct tfm_nn_relative){
        .buckets = torch_integer(c, "buckets", 0),
        .max_distance = torch_integer(c, "max_distance", 0),
        .bidirectional = (int)torch_integer(c, "bidirectional", 0),
    };
}

static void add_bias(struct tfm_graph *graph, const struct torch_case *c, struct tfm_tensor **bias,
                     struct tfm_tensor **bucket)
{
    const struct tfm_nn_relative relative = relative_config(c);

    if (relative.buckets)
        tfm_nn_relative_bias(graph, "rel", table_dtype(c), torch_integer(c, "heads", 0), &relative,
                             bias, bucket);
}

/* The op alone. */
static struct tfm_tensor *build_attend(struct tfm_graph *graph, const struct torch_case *c)
{
    struct tfm_tensor *q = input(graph, c, "q"), *k = input(graph, c, "k"),
                      *v = input(graph, c, "v");
    struct tfm_attention config = {
        .scale = torch_number(c, "scale", 0),
        .bidirectional = (int)torch_integer(c, "bidirectional", 0),
        .window = (int)torch_integer(c, "window", 0),
        .softcap = torch_number(c, "softcap", 0),
    };
    int64_t slots, cells;
    enum tfm_dtype dtype;

    cache_size(c, &slots, &cells);
    if (cache_dtype(c, &dtype) && k) {
        const int64_t shape[] = {slots, cells, k->shape[1], k->shape[2]};
        config.k_cache = tfm_graph_state(graph, "k_cache", dtype, 4, shape);
        config.v_cache = tfm_graph_state(graph, "v_cache", dtype, 4, shape);
    }
    add_bias(graph, c, &config.rel_bias, &config.rel_bucket);
    return tfm_op_attention(graph, q, k, v, &config);
}

static struct tfm_nn_attention attention_config(const struct torch_case *c, const char *name)
{
    char part[4][64];
    struct tfm_nn_attention config = {
        .heads = torch_integer(c, "heads", 0),
        .kv_heads = torch_integer(c, "kv_heads", 0),
        .head_dim = torch_integer(c, "head_dim", 0),
        .scale = torch_number(c, "scale", 0),
        .rope_style = rope_style(c),
        .q_norm = has(c, name, "q_norm.weight"),
        .k_norm = has(c, name, "k_norm.weight"),
        .qk_norm_eps = torch_number(c, "qk_eps", 0),
        .bidirectional = (int)torch_integer(c, "bidirectional", 0),
        .window = torch_integer(c, "window", 0),
        .softcap = torch_number(c, "softcap", 0),
    };

    for (int i = 0; i < 4; i++)
        snprintf(part[i], sizeof part[i], "%s.%c", name, "qkvo"[i]);
    config.q = dtype_of(c, part[0], "weight"), config.q_bias = has(c, part[0], "bias");
    config.k = dtype_of(c, part[1], "weight"), config.k_bias = has(c, part[1], "bias");
    config.v = dtype_of(c, part[2], "weight"), config.v_bias = has(c, part[2], "bias");
    config.o = dtype_of(c, part[3], "weight"), config.o_bias = has(c, part[3], "bias");
    if (cache_dtype(c, &config.cache))
        cache_size(c, &config.slots, &config.cells);
    return config;
}

static struct tfm_tensor *build_attention(struct tfm_graph *graph, const struct torch_case *c)
{
    struct tfm_tensor *x = input(graph, c, "x");
    struct tfm_nn_attention config = attention_config(c, "layer");

    if (torch_integer(c, "dims", 0)) {
        float factors[FACTORS] = {0};
        const struct tfm_nn_rope rope = rope_config(c, factors);
        config.pos = input(graph, c, "pos");
        config.rope_table = tfm_nn_rope_buffer(graph, "rope", table_dtype(c),
                                               torch_integer(c, "positions", 0), &rope);
    }
    add_bias(graph, c, &config.rel_bias, &config.rel_bucket);
    return tfm_nn_attention(graph, "layer", x, &config);
}

/* ---- blocks, positions, stacks ---- */

static struct tfm_tensor *build_block(struct tfm_graph *graph, const struct torch_case *c)
{
    const struct tfm_nn_block config = {
        .eps = torch_number(c, "eps", 0),
        .attention = attention_config(c, "layer.attn"),
        .ffn = ffn_config(c, "layer.ffn", torch_word(c, "ffn")),
        .kind = (enum tfm_nn_block_kind)KIND(block_words, torch_word(c, "kind")),
        .norm = (enum tfm_nn_norm_kind)KIND(norm_words, torch_word(c, "norm")),
    };

    return tfm_nn_block(graph, "layer", input(graph, c, "x"), &config);
}

static struct tfm_tensor *build_learned(struct tfm_graph *graph, const struct torch_case *c)
{
    struct tfm_tensor *x = input(graph, c, "x"), *pos = input(graph, c, "pos");

    return tfm_nn_learned_positions(graph, "layer", x, pos, extent(c, "layer", "weight", 0),
                                    dtype_of(c, "layer", "weight"));
}

static struct tfm_tensor *build_sinusoidal(struct tfm_graph *graph, const struct torch_case *c)
{
    struct tfm_tensor *x = input(graph, c, "x"), *pos = input(graph, c, "pos");

    return tfm_nn_sinusoidal_positions(graph, "layer", x, pos, torch_integer(c, "positions", 0));
}

static struct tfm_tensor *build_softcap(struct tfm_graph *graph, const struct torch_case *c)
{
    return tfm_nn_softcap(graph, "layer", input(graph, c, "x"), torch_number(c, "cap", 0));
}

enum { LAYERS = 4 };

static struct tfm_nn_decoder_layer decoder_layer(const struct torch_case *c, int64_t i)
{
    char name[128];
    snprintf(name, sizeof name, "blk.%d.attn", (int)i);
    const struct tfm_nn_attention attn = attention_config(c, name);
    snprintf(name, sizeof name, "blk.%d.ffn", (int)i);
    const struct tfm_nn_ffn ffn = ffn_config(c, name, torch_word(c, "ffn"));
    const json_t *windows = json_object_get(c->set, "windows");

    return (struct tfm_nn_decoder_layer){
        .q = attn.q,
        .k = attn.k,
        .v = attn.v,
        .o = attn.o,
        .q_bias = attn.q_bias,
        .k_bias = attn.k_bias,
        .v_bias = attn.v_bias,
        .o_bias = attn.o_bias,
        .gate = ffn.gate,
        .up = ffn.up,
        .down = ffn.down,
        .gate_bias = ffn.gate_bias,
        .up_bias = ffn.up_bias,
        .down_bias = ffn.down_bias,
        .window = json_integer_value(json_array_get(windows, (size_t)i)),
    };
}

static struct tfm_tensor *build_decoder(struct tfm_graph *graph, const struct torch_case *c)
{
    const char *block = torch_word(c, "block");
    struct tfm_nn_decoder_layer layer[LAYERS];
    struct tfm_nn_decoder config = {
        .vocab = extent(c, "token_embd", "weight", 0),
        .width = torch_integer(c, "width", 0),
        .layers = torch_integer(c, "layers", 0),
        .heads = torch_integer(c, "heads", 0),
        .kv_heads = torch_integer(c, "kv_heads", 0),
        .head_dim = torch_integer(c, "head_dim", 0),
        .ffn_width = extent(c, "blk.0.ffn.up", "weight", 0),
        .eps = torch_number(c, "eps", 0),
        .positions = 16,
        .rope_style = rope_style(c),
        .embedding = dtype_of(c, "token_embd", "weight"),
        .head = dtype_of(c, "output", "weight"),
        .tied = (int)torch_integer(c, "tied", 0),
        .layer = layer,
        .block = (enum tfm_nn_block_kind)KIND(block_words, *block ? block : "pre"),
        .norm = (enum tfm_nn_norm_kind)KIND(norm_words, torch_word(c, "norm")),
        .no_final_norm = (int)torch_integer(c, "no_final_norm", 0),
        .ffn = (enum tfm_nn_ffn_kind)KIND(ffn_words, torch_word(c, "ffn")),
        .position = (enum tfm_nn_position_kind)KIND(position_words, torch_word(c, "position")),
        .position_weight = dtype_of(c, "pos_embd", "weight"),
        .rope = {.theta = torch_number(c, "theta", 0)},
        .relative = relative_config(c),
        .embedding_scale = torch_number(c, "embedding_scale", 0),
        .qk_norm = (int)torch_integer(c, "qk_norm", 0),
        .scale = torch_number(c, "scale", 0),
        .softcap = torch_number(c, "softcap", 0),
        .logit_softcap = torch_number(c, "logit_softcap", 0),
    };

    if (config.layers > LAYERS)
        return NULL;
    if (cache_dtype(c, &config.cache))
        cache_size(c, &config.slots, &config.cells);
    for (int64_t i = 0; i < config.layers; i++)
        layer[i] = decoder_layer(c, i);
    return tfm_nn_decoder(graph, &config);
}

static const struct {
    const char *name;
    struct tfm_tensor *(*build)(struct tfm_graph *graph, const struct torch_case *c);
} layers[] = {
    {"linear", build_linear},   {"embedding", build_embedding}, {"norm", build_norm},
    {"unary", build_unary},     {"binary", build_binary},       {"ffn", build_ffn},
    {"rope", build_rope},       {"attend", build_attend},       {"attention", build_attention},
    {"block", build_block},     {"learned", build_learned},     {"sinusoidal", build_sinusoidal},
    {"softcap", build_softcap}, {"decoder", build_decoder},
};

const char *torch_layer_name(size_t i)
{
    return i < sizeof layers / sizeof *layers ? layers[i].name : NULL;
}

struct tfm_tensor *torch_layer_build(struct tfm_graph *graph, const struct torch_case *c)
{
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (strcmp(layers[i].name, c->layer) == 0)
            return layers[i].build(graph, c);
    return NULL;
}
