/* SPDX-License-Identifier: MIT
 * Writes tiny Llamas. */
#include "tests/llm/tiny_llama.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/dtype.h>

#include "tests/llm/gguf_builder.h"

struct tiny_llama tiny_llama_default(void)
{
    return (struct tiny_llama){
        .width = 64,
        .layers = 2,
        .heads = 8,
        .kv_heads = 2,
        .head_dim = 8,
        .ffn_width = 96,
        .context = 64,
        .freq_base = 10000,
        .seed = 1,
    };
}

/* Uniform in [-1, 1): a linear congruential generator of 64 bits (Knuth's MMIX), upper half. */
static float next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(*state >> 40) / (1 << 23) - 1.0f;
}

static const enum tfm_dtype dtype_of[] = {
    [TINY_F32] = TFM_DTYPE_F32,   [TINY_F16] = TFM_DTYPE_F16,   [TINY_Q4_0] = TFM_DTYPE_Q4_0,
    [TINY_Q4_1] = TFM_DTYPE_Q4_1, [TINY_Q8_0] = TFM_DTYPE_Q8_0,
};

/* A tensor with values bias + scale * random; rows 0 = a vector. */
static void put(struct gguf_builder *b, const struct tiny_llama *t, const char *name, uint32_t rows,
                uint32_t columns, uint32_t type, float bias, float scale, uint64_t seed)
{
    if (t->missing && !strcmp(name, t->missing))
        return;
    if (t->short_tensor && !strcmp(name, t->short_tensor)) {
        rows -= rows ? 1 : 0;
        columns -= rows ? 0 : 1;
    }
    const uint64_t dims[2] = {columns, rows};
    if (t->foreign_tensor && !strcmp(name, t->foreign_tensor)) {
        gguf_builder_tensor(b, name, rows ? 2 : 1, dims, t->foreign_type, NULL, t->foreign_bytes);
        return;
    }
    const size_t n = (size_t)(rows ? rows : 1) * columns;
    const struct tfm_dtype_info *info = tfm_dtype_info(dtype_of[type]);
    const size_t bytes = n / info->block * info->bytes;
    float *values = malloc(n * sizeof *values);
    void *stored = malloc(bytes);
    if (!values || !stored)
        abort();
    for (size_t i = 0; i < n; i++)
        values[i] = bias + scale * next_random(&seed);
    tfm_dtype_from_f32(dtype_of[type], values, stored, 0, n);
    gguf_builder_tensor(b, name, rows ? 2 : 1, dims, type, stored, bytes);
    free(values);
    free(stored);
}

static void put_layer(struct gguf_builder *b, const struct tiny_llama *t, uint32_t index)
{
    const uint32_t q = t->heads * t->head_dim, kv = t->kv_heads * t->head_dim;
    const struct {
        const char *name;
        uint32_t rows, columns; /* rows 0 = a norm */
        int bias;
    } parts[] = {
        {"attn_norm", 0, t->width, 0},
        {"attn_q", q, t->width, 1},
        {"attn_k", kv, t->width, 1},
        {"attn_v", kv, t->width, 1},
        {"attn_output", t->width, q, 1},
        {"ffn_norm", 0, t->width, 0},
        {"ffn_gate", t->ffn_width, t->width, 0},
        {"ffn_up", t->ffn_width, t->width, 0},
        {"ffn_down", t->width, t->ffn_width, 0},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const uint64_t seed = t->seed * 1000 + index * 20 + i + 1;
        const int norm = parts[i].rows == 0;
        char name[64];
        snprintf(name, sizeof name, "blk.%u.%s.weight", index, parts[i].name);
        /* so that activations stay near 1, and scores differ enough to matter */
        put(b, t, name, parts[i].rows, parts[i].columns, norm ? TINY_F32 : t->type,
            norm ? 1.0f : 0.0f, norm ? 0.3f : 2.0f / sqrtf((float)parts[i].columns), seed);
        snprintf(name, sizeof name, "blk.%u.%s.bias", index, parts[i].name);
        if (t->biases && parts[i].bias)
            put(b, t, name, 0, parts[i].rows, TINY_F32, 0.0f, 0.5f, seed + 500);
    }
}

static void put_tokens(struct gguf_builder *b)
{
    static char bytes[256][3];
    const char *tokens[TINY_VOCAB] = {NULL};
    int32_t types[TINY_VOCAB];
    unsigned other = 256;
    for (unsigned i = 0; i < 256; i++) {
        /* GPT-2's alphabet: what is not printable moves to U+0100 and up */
        const int printable = (i >= 33 && i <= 126) || (i >= 161 && i <= 172) || i >= 174;
        const unsigned code = printable ? i : other++;
        if (code < 128)
            snprintf(bytes[i], sizeof bytes[i], "%c", code);
        else
            snprintf(bytes[i], sizeof bytes[i], "%c%c", (char)(0xc0 | code >> 6),
                     (char)(0x80 | (code & 63)));
        tokens[i] = bytes[i];
        types[i] = 1;
    }
    tokens[256] = "<|begin|>";
    tokens[257] = "<|end|>";
    tokens[258] = "<|more|>";
    types[256] = types[257] = types[258] = 3;
    gguf_builder_string(b, "tokenizer.ggml.model", "gpt2");
    gguf_builder_string(b, "tokenizer.ggml.pre", "smollm");
    gguf_builder_strings(b, "tokenizer.ggml.tokens", tokens, TINY_VOCAB);
    gguf_builder_array(b, "tokenizer.ggml.token_type", TFM_GGUF_I32, types, TINY_VOCAB);
    gguf_builder_strings(b, "tokenizer.ggml.merges", NULL, 0);
    gguf_builder_uint(b, "tokenizer.ggml.bos_token_id", TFM_GGUF_U32, 256);
    gguf_builder_uint(b, "tokenizer.ggml.eos_token_id", TFM_GGUF_U32, 257);
}

static void put_config(struct gguf_builder *b, const struct tiny_llama *t)
{
    const char *architecture = t->architecture ? t->architecture : "llama";
    const struct {
        const char *key;
        uint32_t value;
    } numbers[] = {
        {"embedding_length", t->width},        {"block_count", t->layers},
        {"attention.head_count", t->heads},    {"attention.head_count_kv", t->kv_heads},
        {"attention.key_length", t->head_dim}, {"attention.value_length", t->head_dim},
        {"rope.dimension_count", t->head_dim}, {"feed_forward_length", t->ffn_width},
        {"context_length", t->context},        {"vocab_size", TINY_VOCAB},
    };
    char key[96];
    gguf_builder_string(b, "general.architecture", architecture);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(key, sizeof key, "%s.%s", architecture, numbers[i].key);
        gguf_builder_uint(b, key, TFM_GGUF_U32, numbers[i].value);
    }
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", architecture);
    gguf_builder_float(b, key, TFM_GGUF_F32, 1e-5);
    snprintf(key, sizeof key, "%s.rope.freq_base", architecture);
    if (t->freq_base > 0)
        gguf_builder_float(b, key, TFM_GGUF_F32, t->freq_base);
    snprintf(key, sizeof key, "%s.rope.scaling.type", architecture);
    if (t->scaling)
        gguf_builder_string(b, key, t->scaling);
}

void tiny_llama_write(const struct tiny_llama *t, const char *path)
{
    struct gguf_builder *b = gguf_builder_create();
    put_config(b, t);
    put_tokens(b);
    put(b, t, "token_embd.weight", TINY_VOCAB, t->width, t->embedding_type, 0.0f, 1.0f, t->seed);
    for (uint32_t i = 0; i < t->layers; i++)
        put_layer(b, t, i);
    put(b, t, "output_norm.weight", 0, t->width, TINY_F32, 1.0f, 0.3f, t->seed + 1);
    if (t->head != TINY_TIED)
        put(b, t, "output.weight", TINY_VOCAB, t->width,
            t->head == TINY_HEAD_COPIED ? t->embedding_type : t->type, 0.0f, 1.0f,
            t->head == TINY_HEAD_COPIED ? t->seed : t->seed + 2);
    if (t->extra)
        put(b, t, t->extra, 0, t->width, TINY_F32, 0.0f, 1.0f, t->seed + 3);
    remove(path); /* a new file: the old one may still be mapped */
    if (gguf_builder_write(b, path)) {
        perror(path);
        exit(99);
    }
    gguf_builder_destroy(b);
}
