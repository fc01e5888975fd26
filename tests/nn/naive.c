/* SPDX-License-Identifier: MIT
 * The decoder in plain loops. Formulas from the papers named in tfm/nn.h, not from the ops. */
#include "tests/nn/naive.h"

#include <math.h>
#include <stdio.h>

/* Memory of one call, freed at its end. */
struct naive {
    const struct net *net;
    const struct tfm_nn_decoder *c;
    int n; /* rows */
    double *blocks[4096];
    int n_blocks;
};

static double *keep(struct naive *s, double *block)
{
    ck_assert_ptr_nonnull(block);
    ck_assert_int_lt(s->n_blocks, 4096);
    return s->blocks[s->n_blocks++] = block;
}

static double *zeros(struct naive *s, int64_t n)
{
    return keep(s, calloc((size_t)n, sizeof(double)));
}

/* Weight PREFIX.LEAF; NULL if the config wants none. One that the config wants and the graph lacks fails. */
static const double *weight(struct naive *s, int wanted, const char *prefix, const char *leaf)
{
    char name[300];
    snprintf(name, sizeof name, "%s.%s", prefix, leaf);
    return wanted ? keep(s, net_weight(s->net, name)) : NULL;
}

static const char *join(char *buffer, const char *prefix, const char *leaf)
{
    snprintf(buffer, 200, "%s.%s", prefix, leaf);
    return buffer;
}

/* y[n][out] = x[n][in] W^T + b */
static double *linear(struct naive *s, const char *name, const double *x, int64_t in, int64_t out,
                      int bias)
{
    const double *W = weight(s, 1, name, "weight"), *b = weight(s, bias, name, "bias");
    double *y = zeros(s, s->n * out);

    for (int r = 0; r < s->n; r++)
        for (int64_t o = 0; o < out; o++) {
            double sum = b ? b[o] : 0;
            for (int64_t i = 0; i < in; i++)
                sum += W[o * in + i] * x[r * in + i];
            y[r * out + o] = sum;
        }
    return y;
}

/* rows of D values; LAYER subtracts the mean */
static double *norm(struct naive *s, const char *name, const double *x, int64_t rows, int64_t D,
                    enum tfm_nn_norm_kind kind)
{
    double *y = zeros(s, rows * D);
    const double *gamma = weight(s, kind != TFM_NN_NORM_NONE, name, "weight");
    const double *beta = weight(s, kind == TFM_NN_NORM_LAYER, name, "bias");

    for (int64_t r = 0; r < rows; r++) {
        double mean = 0, square = 0;
        for (int64_t i = 0; i < D; i++)
            mean += kind == TFM_NN_NORM_LAYER ? x[r * D + i] / (double)D : 0;
        for (int64_t i = 0; i < D; i++)
            square += (x[r * D + i] - mean) * (x[r * D + i] - mean) / (double)D;
        for (int64_t i = 0; i < D; i++) {
            const double v = (x[r * D + i] - mean) / sqrt(square + s->c->eps);
            y[r * D + i] = gamma ? v * gamma[i] + (beta ? beta[i] : 0) : x[r * D + i];
        }
    }
    return y;
}

static double sigmoid(double z)
{
    return 1 / (1 + exp(-z));
}

static double gelu_tanh(double z)
{
    return 0.5 * z * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (z + 0.044715 * z * z * z)));
}

static double hidden(enum tfm_nn_ffn_kind kind, double gate, double up)
{
    switch (kind) {
    case TFM_NN_FFN_SWIGLU:
        return gate * sigmoid(gate) * up;
    case TFM_NN_FFN_GEGLU:
        return gelu_tanh(gate) * up;
    case TFM_NN_FFN_GLU:
        return sigmoid(gate) * up;
    case TFM_NN_FFN_RELU:
        return up > 0 ? up : 0;
    case TFM_NN_FFN_GELU:
        return 0.5 * up * (1 + erf(up / sqrt(2)));
    case TFM_NN_FFN_GELU_TANH:
        return gelu_tanh(up);
    case TFM_NN_FFN_SILU:
        return up * sigmoid(up);
    }
    return NAN;
}

static double *ffn(struct naive *s, const char *name, const double *x,
                   const struct tfm_nn_decoder_layer *layer)
{
    const int64_t D = s->c->width, F = s->c->ffn_width;
    char leaf[200];
    const int gated = s->c->ffn <= TFM_NN_FFN_GLU; /* the first three kinds */
    const double *gate =
        gated ? linear(s, join(leaf, name, "gate"), x, D, F, layer->gate_bias) : NULL;
    const double *up = linear(s, join(leaf, name, "up"), x, D, F, layer->up_bias);
    double *h = zeros(s, s->n * F);

    for (int64_t i = 0; i < s->n * F; i++)
        h[i] = hidden(s->c->ffn, gate ? gate[i] : 0, up[i]);
    return linear(s, join(leaf, name, "down"), h, F, D, layer->down_bias);
}

/* The first r elements of each head turn by pos theta^(-2i/r). */
static void rotate(struct naive *s, double *x, int64_t heads)
{
    const struct tfm_nn_decoder *c = s->c;
    const int64_t d = c->head_dim, r = c->rope_dims ? c->rope_dims : d;
    const double theta = c->rope.theta != 0 ? c->rope.theta : 10000;

    for (int p = 0; p < s->n; p++)
        for (int64_t h = 0; h < heads; h++)
            for (int64_t i = 0; i < r / 2; i++) {
                double *head = x + (p * heads + h) * d;
                const int halves = c->rope_style == TFM_ROPE_HALVES;
                double *a = head + (halves ? i : 2 * i),
                       *b = head + (halves ? i + r / 2 : 2 * i + 1);
                const double angle = p * pow(theta, -2.0 * (double)i / (double)r);
                const double before = *a;
                *a = before * cos(angle) - *b * sin(angle);
                *b = before * sin(angle) + *b * cos(angle);
            }
}

static int visible(const struct tfm_nn_decoder *c, int64_t window, int query, int key)
{
    if (!c->bidirectional && key > query)
        return 0;
    return window == 0 || abs(query - key) < window;
}

/* What attention adds to a score. */
static double bias_of(const struct naive *s, const double *rel_bias, int64_t head, int query,
                      int key)
{
    struct tfm_nn_relative relative = s->c->relative;
    int32_t bucket = 0;

    if (!rel_bias)
        return 0;
    relative.bidirectional = s->c->bidirectional;
    ck_assert_int_eq(tfm_nn_relative_bucket(&relative, key - query, &bucket, NULL), TFM_STATUS_OK);
    return rel_bias[bucket * s->c->heads + head];
}

static double *attention(struct naive *s, const char *name, const double *x,
                         const struct tfm_nn_decoder_layer *layer)
{
    const struct tfm_nn_decoder *c = s->c;
    const int64_t D = c->width, H = c->heads, G = c->kv_heads, d = c->head_dim;
    const double scale = c->scale != 0 ? c->scale : 1 / sqrt((double)d);
    const double *rel_bias =
        weight(s, c->position == TFM_NN_POSITION_RELATIVE, "rel_pos", "rel_bias");
    char leaf[200];
    double *q = linear(s, join(leaf, name, "q"), x, D, H * d, layer->q_bias);
    double *k = linear(s, join(leaf, name, "k"), x, D, G * d, layer->k_bias);
    double *v = linear(s, join(leaf, name, "v"), x, D, G * d, layer->v_bias);
    double *y = zeros(s, s->n * H * d), *score = zeros(s, s->n);

    if (c->qk_norm) {
        q = norm(s, join(leaf, name, "q_norm"), q, s->n * H, d, TFM_NN_NORM_RMS);
        k = norm(s, join(leaf, name, "k_norm"), k, s->n * G, d, TFM_NN_NORM_RMS);
    }
    if (c->position == TFM_NN_POSITION_ROPE) {
        rotate(s, q, H);
        rotate(s, k, G);
    }
    for (int query = 0; query < s->n; query++)
        for (int64_t h = 0; h < H; h++) {
            const int64_t g = h / (H / G);
            double total = 0;
            for (int key = 0; key < s->n; key++) {
                double dot = 0;
                for (int64_t i = 0; i < d; i++)
                    dot += q[(query * H + h) * d + i] * k[(key * G + g) * d + i];
                dot *= scale;
                if (c->softcap > 0)
                    dot = c->softcap * tanh(dot / c->softcap);
                dot += bias_of(s, rel_bias, h, query, key);
                score[key] = visible(c, layer->window, query, key) ? exp(dot) : 0;
                total += score[key];
            }
            for (int key = 0; key < s->n; key++)
                for (int64_t i = 0; i < d; i++)
                    y[(query * H + h) * d + i] += score[key] / total * v[(key * G + g) * d + i];
        }
    return linear(s, join(leaf, name, "o"), y, H * d, D, layer->o_bias);
}

static double *add(struct naive *s, const double *a, const double *b)
{
    double *y = zeros(s, s->n * s->c->width);
    for (int64_t i = 0; i < s->n * s->c->width; i++)
        y[i] = a[i] + b[i];
    return y;
}

/* number 0: attention, 1: ffn */
static double *sublayer(struct naive *s, const char *block, int number, const double *x,
                        const struct tfm_nn_decoder_layer *layer)
{
    static const char *const leaves[] = {"attn", "ffn"};
    char name[96], before[96], after[96];
    const enum tfm_nn_norm_kind kind = s->c->norm;
    const int64_t D = s->c->width;
    const double *in = x;

    snprintf(name, sizeof name, "%s.%s", block, leaves[number]);
    snprintf(before, sizeof before, "%s.%s_norm", block, leaves[number]);
    snprintf(after, sizeof after, "%s.%s_post_norm", block, leaves[number]);
    if (s->c->block != TFM_NN_BLOCK_POST)
        in = norm(s, before, x, s->n, D, kind);
    const double *h = number ? ffn(s, name, in, layer) : attention(s, name, in, layer);
    if (s->c->block == TFM_NN_BLOCK_PRE_POST)
        h = norm(s, after, h, s->n, D, kind);
    double *y = add(s, x, h);
    return s->c->block == TFM_NN_BLOCK_POST ? norm(s, before, y, s->n, D, kind) : y;
}

static double *embed(struct naive *s, const int32_t *ids)
{
    const struct tfm_nn_decoder *c = s->c;
    const int64_t D = c->width;
    const double *table = weight(s, 1, "token_embd", "weight");
    const double *learned = weight(s, c->position == TFM_NN_POSITION_LEARNED, "pos_embd", "weight");
    double *x = zeros(s, s->n * D);

    for (int p = 0; p < s->n; p++)
        for (int64_t i = 0; i < D; i++) {
            double *to = x + p * D + i;
            *to = table[ids[p] * D + i] * (c->embedding_scale != 0 ? c->embedding_scale : 1);
            if (c->position == TFM_NN_POSITION_LEARNED)
                *to += learned[p * D + i];
            if (c->position == TFM_NN_POSITION_SINUSOIDAL) {
                const double angle = p / pow(10000, (double)(i / 2 * 2) / (double)D);
                *to += i % 2 ? cos(angle) : sin(angle);
            }
        }
    return x;
}

void naive_decoder(const struct net *net, const struct tfm_nn_decoder *config, const int32_t *ids,
                   int n, double *logits)
{
    static struct naive s;
    s = (struct naive){.net = net, .c = config, .n = n};
    double *x = embed(&s, ids);

    for (int64_t i = 0; i < config->layers; i++) {
        const struct tfm_nn_decoder_layer *layer =
            config->layer ? &config->layer[i] : &config->each;
        char block[32];
        snprintf(block, sizeof block, "blk.%d", (int)i);
        x = sublayer(&s, block, 0, x, layer);
        x = sublayer(&s, block, 1, x, layer);
    }
    if (!config->no_final_norm)
        x = norm(&s, "output_norm", x, n, config->width, config->norm);
    /* a tied head is a linear whose weight is the table */
    x = linear(&s, config->tied ? "token_embd" : "output", x, config->width, config->vocab, 0);
    for (int64_t i = 0; i < n * config->vocab; i++)
        logits[i] = config->logit_softcap > 0
                        ? config->logit_softcap * tanh(x[i] / config->logit_softcap)
                        : x[i];
    for (int i = 0; i < s.n_blocks; i++)
        free(s.blocks[i]);
}
