/* SPDX-License-Identifier: MIT
 * A Llama decoder in double precision, written for being obviously right. */
#include "tests/llm/naive_llama.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/gguf.h>

struct matrix {
    size_t rows, columns;
    double *value; /* [rows, columns] */
    double *bias;  /* [rows] or NULL */
};

struct layer {
    struct matrix q, k, v, o, gate, up, down;
    double *attn_norm, *ffn_norm; /* [width] */
};

struct naive_llama {
    size_t vocab, width, layers, heads, kv_heads, head_dim;
    double eps, theta;
    struct matrix embedding, head; /* head.value = embedding.value when tied */
    double *output_norm;
    struct layer *layer;
};

static void *room(size_t n, size_t size)
{
    void *memory = calloc(n ? n : 1, size);
    if (!memory) {
        fprintf(stderr, "naive_llama: out of memory\n");
        exit(99);
    }
    return memory;
}

static _Noreturn void refuse(const char *what, const char *name)
{
    fprintf(stderr, "naive_llama: %s: %s\n", name, what);
    exit(99);
}

/* ---- the file ---- */

static double half(const unsigned char *p)
{
    unsigned bits = p[0] | (unsigned)p[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 0    ? ldexp(fraction, -24)
                   : exponent == 31 ? (fraction ? NAN : INFINITY)
                                    : ldexp(1024 + fraction, (int)exponent - 25);
    return bits & 0x8000 ? -value : value;
}

/* ggml's type numbers; block layouts as in tfm/dtype.h. */
static double element(const struct tfm_gguf_tensor *t, const char *name, size_t i)
{
    const unsigned char *p = t->data;
    size_t in = i % 32;
    float f;
    switch (t->file_type) {
    case 0: /* F32 */
        memcpy(&f, p + 4 * i, 4);
        return f;
    case 1: /* F16 */
        return half(p + 2 * i);
    case 2: /* Q4_0 */
        p += i / 32 * 18;
        return ((p[2 + in % 16] >> (in < 16 ? 0 : 4) & 15) - 8) * half(p);
    case 3: /* Q4_1 */
        p += i / 32 * 20;
        return (p[4 + in % 16] >> (in < 16 ? 0 : 4) & 15) * half(p) + half(p + 2);
    case 8: /* Q8_0 */
        p += i / 32 * 34;
        return (signed char)p[2 + in] * half(p);
    default:
        refuse("a type that the naive model does not read", name);
    }
}

/* NULL when there is no such tensor. */
static double *read_values(const struct tfm_gguf *file, const char *name, size_t *rows,
                           size_t *columns)
{
    const struct tfm_gguf_tensor *t = tfm_gguf_find(file, name);
    if (!t)
        return NULL;
    *columns = (size_t)t->shape[t->rank - 1];
    *rows = t->rank == 2 ? (size_t)t->shape[0] : 1;
    double *values = room(*rows * *columns, sizeof *values);
    for (size_t i = 0; i < *rows * *columns; i++)
        values[i] = element(t, name, i);
    return values;
}

static double *read_vector(const struct tfm_gguf *file, const char *name)
{
    size_t rows = 0, columns = 0;
    double *values = read_values(file, name, &rows, &columns);
    if (!values)
        refuse("missing", name);
    return values;
}

static struct matrix read_matrix(const struct tfm_gguf *file, const char *name)
{
    struct matrix m = {0};
    char full[128];
    size_t one = 0, n = 0;
    snprintf(full, sizeof full, "%s.weight", name);
    m.value = read_values(file, full, &m.rows, &m.columns);
    snprintf(full, sizeof full, "%s.bias", name);
    m.bias = read_values(file, full, &one, &n);
    return m;
}

static struct layer read_layer(const struct tfm_gguf *file, size_t index)
{
    struct layer layer = {0};
    const struct {
        const char *name;
        struct matrix *matrix;
    } matrices[] = {
        {"attn_q", &layer.q},      {"attn_k", &layer.k},      {"attn_v", &layer.v},
        {"ffn_gate", &layer.gate}, {"attn_output", &layer.o}, {"ffn_up", &layer.up},
        {"ffn_down", &layer.down},
    };
    char name[64];
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        snprintf(name, sizeof name, "blk.%zu.%s", index, matrices[i].name);
        *matrices[i].matrix = read_matrix(file, name);
        if (!matrices[i].matrix->value)
            refuse("missing", name);
    }
    snprintf(name, sizeof name, "blk.%zu.attn_norm.weight", index);
    layer.attn_norm = read_vector(file, name);
    snprintf(name, sizeof name, "blk.%zu.ffn_norm.weight", index);
    layer.ffn_norm = read_vector(file, name);
    return layer;
}

static size_t read_count(const struct tfm_gguf *file, const char *key)
{
    uint64_t value = 0;
    if (tfm_gguf_uint(file, key, &value, NULL) != TFM_STATUS_OK || value == 0)
        refuse("missing or 0", key);
    return (size_t)value;
}

struct naive_llama *naive_llama_open(const char *path)
{
    struct tfm_gguf *file = NULL;
    struct tfm_error err = {0};
    if (tfm_gguf_open(path, &file, &err) != TFM_STATUS_OK)
        refuse(err.text, path);
    struct naive_llama *m = room(1, sizeof *m);
    m->width = read_count(file, "llama.embedding_length");
    m->layers = read_count(file, "llama.block_count");
    m->heads = read_count(file, "llama.attention.head_count");
    m->kv_heads = read_count(file, "llama.attention.head_count_kv");
    m->theta = 10000;
    tfm_gguf_float(file, "llama.rope.freq_base", &m->theta, NULL);
    if (tfm_gguf_float(file, "llama.attention.layer_norm_rms_epsilon", &m->eps, NULL))
        refuse("no epsilon", path);
    m->embedding = read_matrix(file, "token_embd");
    m->head = read_matrix(file, "output");
    m->output_norm = read_vector(file, "output_norm.weight");
    if (!m->embedding.value)
        refuse("missing", "token_embd.weight");
    if (!m->head.value)
        m->head = m->embedding;
    m->vocab = m->embedding.rows;
    m->layer = room(m->layers, sizeof *m->layer);
    for (size_t i = 0; i < m->layers; i++)
        m->layer[i] = read_layer(file, i);
    m->head_dim = m->layer[0].q.rows / m->heads;
    tfm_gguf_close(file);
    return m;
}

static void matrix_free(struct matrix *m)
{
    free(m->value);
    free(m->bias);
}

void naive_llama_close(struct naive_llama *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->layers; i++) {
        struct layer *l = &m->layer[i];
        struct matrix *all[] = {&l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down};
        for (size_t j = 0; j < sizeof all / sizeof *all; j++)
            matrix_free(all[j]);
        free(l->attn_norm);
        free(l->ffn_norm);
    }
    if (m->head.value != m->embedding.value)
        matrix_free(&m->head);
    matrix_free(&m->embedding);
    free(m->output_norm);
    free(m->layer);
    free(m);
}

size_t naive_llama_vocab(const struct naive_llama *m)
{
    return m->vocab;
}

/* ---- the decoder ---- */

/* y [rows] = m x (+ bias) */
static void multiply(const struct matrix *m, const double *x, double *y)
{
    for (size_t r = 0; r < m->rows; r++) {
        double sum = m->bias ? m->bias[r] : 0;
        for (size_t c = 0; c < m->columns; c++)
            sum += m->value[r * m->columns + c] * x[c];
        y[r] = sum;
    }
}

static void norm(const struct naive_llama *m, const double *x, const double *gamma, double *y)
{
    double squares = 0;
    for (size_t i = 0; i < m->width; i++)
        squares += x[i] * x[i];
    for (size_t i = 0; i < m->width; i++)
        y[i] = x[i] / sqrt(squares / (double)m->width + m->eps) * gamma[i];
}

/* Rotates the pairs (2i, 2i + 1) of every head by position * theta^(-2i/d). */
static void rotate(const struct naive_llama *m, double *x, size_t heads, int64_t position)
{
    size_t d = m->head_dim;
    for (size_t i = 0; i < heads * d; i += 2) {
        double angle = (double)position * pow(m->theta, -(double)(i % d) / (double)d);
        double a = x[i], b = x[i + 1];
        x[i] = a * cos(angle) - b * sin(angle);
        x[i + 1] = a * sin(angle) + b * cos(angle);
    }
}

/* Head h of the last of n tokens: out [d] = sum of softmax(q k / sqrt(d)) v over keys 0..n-1. */
static void attend(const struct naive_llama *m, const double *q, const double *k, const double *v,
                   size_t n, double *out)
{
    size_t d = m->head_dim, stride = m->kv_heads * d;
    double *score = room(n, sizeof *score), best = -INFINITY, total = 0;
    for (size_t j = 0; j < n; j++) {
        for (size_t c = 0; c < d; c++)
            score[j] += q[c] * k[j * stride + c];
        score[j] /= sqrt((double)d);
        best = fmax(best, score[j]);
    }
    for (size_t j = 0; j < n; j++)
        total += score[j] = exp(score[j] - best);
    for (size_t c = 0; c < d; c++) {
        out[c] = 0;
        for (size_t j = 0; j < n; j++)
            out[c] += score[j] / total * v[j * stride + c];
    }
    free(score);
}

static void run_layer(const struct naive_llama *m, const struct layer *l, double *x, size_t n,
                      int64_t position)
{
    size_t width = m->width, d = m->head_dim, q_size = m->heads * d, kv_size = m->kv_heads * d;
    size_t ffn = l->gate.rows;
    double *h = room(width, sizeof *h), *q = room(q_size, sizeof *q),
           *mix = room(q_size, sizeof *mix);
    double *k = room(n * kv_size, sizeof *k), *v = room(n * kv_size, sizeof *v);
    double *gate = room(ffn, sizeof *gate), *up = room(ffn, sizeof *up);
    for (size_t t = 0; t < n; t++) {
        double *row = x + t * width;
        norm(m, row, l->attn_norm, h);
        multiply(&l->q, h, q);
        multiply(&l->k, h, k + t * kv_size);
        multiply(&l->v, h, v + t * kv_size);
        rotate(m, q, m->heads, position + (int64_t)t);
        rotate(m, k + t * kv_size, m->kv_heads, position + (int64_t)t);
        for (size_t i = 0; i < m->heads; i++) {
            size_t g = i / (m->heads / m->kv_heads);
            attend(m, q + i * d, k + g * d, v + g * d, t + 1, mix + i * d);
        }
        multiply(&l->o, mix, h);
        for (size_t i = 0; i < width; i++)
            row[i] += h[i];
        norm(m, row, l->ffn_norm, h);
        multiply(&l->gate, h, gate);
        multiply(&l->up, h, up);
        for (size_t i = 0; i < ffn; i++)
            gate[i] *= up[i] / (1 + exp(-gate[i]));
        multiply(&l->down, gate, h);
        for (size_t i = 0; i < width; i++)
            row[i] += h[i];
    }
    double *all[] = {h, q, mix, k, v, gate, up};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

void naive_llama_logits(const struct naive_llama *m, const int32_t *ids, size_t n, int64_t position,
                        double *logits)
{
    double *x = room(n * m->width, sizeof *x), *last = room(m->width, sizeof *last);
    for (size_t t = 0; t < n; t++)
        memcpy(x + t * m->width, m->embedding.value + (size_t)ids[t] * m->width,
               m->width * sizeof *x);
    for (size_t i = 0; i < m->layers; i++)
        run_layer(m, &m->layer[i], x, n, position);
    norm(m, x + (n - 1) * m->width, m->output_norm, last);
    multiply(&m->head, last, logits);
    free(x);
    free(last);
}
