/* SPDX-License-Identifier: MIT
 * The toy model: its vocabulary, its numbers, its random weights. */
#include "tests/llm/toy_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <tfm/dtype.h>

#include "tests/llm/gguf_builder.h"

struct writer {
    struct gguf_builder *file;
    uint64_t random;
};

/* ---- the vocabulary ------------------------------------------------------------------------------ */

/* Left and right half; the whole is a token. A leading blank is written as U+0120. */
static const char *const merges[TOY_MERGES][2] = {
    {"t", "h"},    {"th", "e"},   {"i", "n"},    {"a", "n"},   {"an", "d"},   {"o", "n"},
    {"e", "r"},    {"o", "u"},    {"r", "e"},    {"i", "s"},   {"Ġ", "t"},    {"Ġt", "he"},
    {"Ġ", "a"},    {"Ġ", "and"},  {"Ġ", "w"},    {"O", "n"},   {"On", "c"},   {"Onc", "e"},
    {"u", "p"},    {"up", "on"},  {"Ġ", "upon"}, {"t", "i"},   {"ti", "m"},   {"tim", "e"},
    {"Ġ", "time"}, {"h", "e"},    {"l", "l"},    {"he", "ll"}, {"hell", "o"}, {"w", "or"},
    {"o", "r"},    {"wor", "ld"}, {"l", "d"},
};

/* GPT-2's alphabet: printable Latin-1 stands for itself, the other bytes are U+0100 and up in order. */
static void byte_token(unsigned byte, char text[3])
{
    unsigned character = byte;
    if (!((byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174))
        character = 256 + (byte <= 32 ? byte : byte <= 160 ? byte - 127 + 33 : 67);
    if (character < 128) {
        text[0] = (char)character;
        text[1] = '\0';
    } else {
        text[0] = (char)(0xc0 | character >> 6);
        text[1] = (char)(0x80 | (character & 0x3f));
        text[2] = '\0';
    }
}

static void put_tokens(struct gguf_builder *file)
{
    static const char *const control[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    static char texts[TOY_VOCAB + TOY_MERGES][32];
    const char *tokens[TOY_VOCAB], *pairs[TOY_MERGES];
    int32_t types[TOY_VOCAB];

    for (unsigned i = 0; i < TOY_VOCAB; i++) {
        if (i < 256)
            byte_token(i, texts[i]);
        else if (i < TOY_VOCAB - 3)
            snprintf(texts[i], sizeof texts[i], "%s%s", merges[i - 256][0], merges[i - 256][1]);
        else
            snprintf(texts[i], sizeof texts[i], "%s", control[i - (TOY_VOCAB - 3)]);
        tokens[i] = texts[i];
        types[i] = i < TOY_VOCAB - 3 ? 1 : 3; /* normal, control */
    }
    for (unsigned i = 0; i < TOY_MERGES; i++) {
        char *text = texts[TOY_VOCAB + i];
        snprintf(text, sizeof texts[0], "%s %s", merges[i][0], merges[i][1]);
        pairs[i] = text;
    }
    gguf_builder_strings(file, "tokenizer.ggml.tokens", tokens, TOY_VOCAB);
    gguf_builder_array(file, "tokenizer.ggml.token_type", TFM_GGUF_I32, types, TOY_VOCAB);
    gguf_builder_strings(file, "tokenizer.ggml.merges", pairs, TOY_MERGES);
}

static void put_pairs(struct gguf_builder *file, const struct toy_model *toy)
{
    const struct {
        const char *key;
        uint32_t value;
    } numbers[] = {
        {"llama.vocab_size", TOY_VOCAB},
        {"llama.context_length", toy->context},
        {"llama.embedding_length", TOY_WIDTH},
        {"llama.block_count", TOY_LAYERS},
        {"llama.feed_forward_length", TOY_FFN_WIDTH},
        {"llama.attention.head_count", TOY_HEADS},
        {"llama.attention.head_count_kv", TOY_KV_HEADS},
        {"llama.rope.dimension_count", TOY_HEAD_DIM},
        {"tokenizer.ggml.bos_token_id", TOY_BOS},
        {"tokenizer.ggml.eos_token_id", (uint32_t)toy->end},
    };
    gguf_builder_string(file, "general.architecture", "llama");
    gguf_builder_string(file, "general.name", "toy");
    gguf_builder_string(file, "tokenizer.ggml.model", "gpt2");
    gguf_builder_string(file, "tokenizer.ggml.pre", "smollm");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        gguf_builder_uint(file, numbers[i].key, TFM_GGUF_U32, numbers[i].value);
    gguf_builder_float(file, "llama.attention.layer_norm_rms_epsilon", TFM_GGUF_F32, 1e-5);
    gguf_builder_float(file, "llama.rope.freq_base", TFM_GGUF_F32, 10000);
    put_tokens(file);
}

/* ---- the weights --------------------------------------------------------------------------------- */

/* Uniform in [-1, 1): splitmix64 (Steele et al. 2014). */
static float next_random(struct writer *w)
{
    uint64_t z = w->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (float)((double)(z >> 11) * 0x1p-52 - 1.0);
}

/* ggml's numbers of the types */
static uint32_t file_type(enum tfm_dtype dtype)
{
    return dtype == TFM_DTYPE_Q4_1 ? 3 : dtype == TFM_DTYPE_Q8_0 ? 8 : 0;
}

/* `columns` is the contiguous extent; rows 0 = a vector. */
static void put_tensor(struct writer *w, const char *name, enum tfm_dtype dtype, uint64_t rows,
                       uint64_t columns, const float *values)
{
    const struct tfm_dtype_info *info = tfm_dtype_info(dtype);
    const size_t n = (rows ? rows : 1) * columns;
    const size_t bytes = n / info->block * info->bytes;
    const uint64_t dims[] = {columns, rows};
    unsigned char *stored = malloc(bytes);

    if (!stored)
        abort();
    tfm_dtype_from_f32(dtype, values, stored, 0, n);
    gguf_builder_tensor(w->file, name, rows ? 2 : 1, dims, file_type(dtype), stored, bytes);
    free(stored);
}

static float values[TOY_VOCAB * TOY_WIDTH + TOY_WIDTH * TOY_FFN_WIDTH];

/* Random weights of the size that keeps activations near 1. */
static void put_matrix(struct writer *w, const char *name, enum tfm_dtype dtype, uint64_t rows,
                       uint64_t columns)
{
    const float bound = (float)sqrt(3.0 / (double)columns);
    for (size_t i = 0; i < rows * columns; i++)
        values[i] = bound * next_random(w);
    put_tensor(w, name, dtype, rows, columns, values);
}

static void put_norm(struct writer *w, const char *name)
{
    for (size_t i = 0; i < TOY_WIDTH; i++)
        values[i] = 1.0f + 0.25f * next_random(w);
    put_tensor(w, name, TFM_DTYPE_F32, 0, TOY_WIDTH, values);
}

static void put_head(struct writer *w, enum tfm_dtype dtype)
{
    for (size_t i = 0; i < TOY_VOCAB; i++)
        for (size_t k = 0; k < TOY_WIDTH; k++)
            values[i * TOY_WIDTH + k] = (i >= ' ' && i <= '~' ? 0.5f : 0.01f) * next_random(w);
    put_tensor(w, "output.weight", dtype, TOY_VOCAB, TOY_WIDTH, values);
}

static void put_layer(struct writer *w, int number, enum tfm_dtype dtype)
{
    enum { Q = TOY_HEADS * TOY_HEAD_DIM, KV = TOY_KV_HEADS * TOY_HEAD_DIM };
    static const struct {
        const char *name;
        uint64_t rows, columns; /* rows 0 = a norm */
    } parts[] = {
        {"attn_norm", 0, 0},
        {"attn_q", Q, TOY_WIDTH},
        {"attn_k", KV, TOY_WIDTH},
        {"attn_v", KV, TOY_WIDTH},
        {"attn_output", TOY_WIDTH, Q},
        {"ffn_norm", 0, 0},
        {"ffn_gate", TOY_FFN_WIDTH, TOY_WIDTH},
        {"ffn_up", TOY_FFN_WIDTH, TOY_WIDTH},
        {"ffn_down", TOY_WIDTH, TOY_FFN_WIDTH},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.%s.weight", number, parts[i].name);
        if (parts[i].rows)
            put_matrix(w, name, dtype, parts[i].rows, parts[i].columns);
        else
            put_norm(w, name);
    }
}

static void put_weights(struct writer *w, const struct toy_model *toy)
{
    const enum tfm_dtype outer = toy->quantized ? TFM_DTYPE_Q8_0 : TFM_DTYPE_F32;
    const enum tfm_dtype inner = toy->quantized ? TFM_DTYPE_Q4_1 : TFM_DTYPE_F32;

    put_matrix(w, "token_embd.weight", outer, TOY_VOCAB, TOY_WIDTH);
    for (int i = 0; i < TOY_LAYERS; i++)
        put_layer(w, i, inner);
    put_norm(w, "output_norm.weight");
    if (!toy->tied)
        put_head(w, outer);
}

/* ---- the whole ----------------------------------------------------------------------------------- */

void toy_model_defaults(struct toy_model *toy)
{
    *toy = (struct toy_model){.seed = 1, .end = TOY_END, .context = 256};
}

int toy_model_write(const struct toy_model *toy, const char *path)
{
    struct writer w = {.file = gguf_builder_create(), .random = toy->seed};
    put_pairs(w.file, toy);
    put_weights(&w, toy);
    int failed = gguf_builder_write(w.file, path);
    if (failed)
        perror(path);
    gguf_builder_destroy(w.file);
    return failed ? -1 : 0;
}
