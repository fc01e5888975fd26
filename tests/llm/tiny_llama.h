/* SPDX-License-Identifier: MIT
 * Llamas of a few thousand random weights in a GGUF file, with a knob for each thing that tests want to
 * vary or break. (The toy model is one fixed shape with a vocabulary that speaks.) */
#ifndef TESTS_TINY_LLAMA_H
#define TESTS_TINY_LLAMA_H

#include <stdint.h>

enum { TINY_VOCAB = 259 }; /* the bytes and three control tokens: no multiple of anything */

/* Where the head comes from. */
enum tiny_head { TINY_TIED, TINY_HEAD_COPIED, TINY_HEAD_OWN };

/* ggml's numbers of tensor types; all matrices but the embedding and its copy have `type`. */
enum { TINY_F32 = 0, TINY_F16 = 1, TINY_Q4_0 = 2, TINY_Q4_1 = 3, TINY_Q8_0 = 8, TINY_Q4_K = 12 };

struct tiny_llama {
    uint32_t width, layers, heads, kv_heads, head_dim, ffn_width;
    uint32_t context;
    uint32_t type, embedding_type;
    enum tiny_head head;
    int biases;       /* on q, k, v and o */
    double freq_base; /* 0 = the key is absent */
    uint64_t seed;

    /* ---- faults; NULL = none ---- */
    const char *architecture;   /* instead of "llama" */
    const char *scaling;        /* llama.rope.scaling.type */
    const char *missing;        /* this tensor is left out */
    const char *short_tensor;   /* this one has a row (or element) less */
    const char *foreign_tensor; /* this one is of `foreign_type` ... */
    uint32_t foreign_type;      /* ... with so many zeros of data: */
    uint32_t foreign_bytes;
    const char *extra; /* one more tensor of this name */
};

/* 64 wide, 2 layers, 8 heads on 2, head_dim 8, ffn 96, context 64, F32, tied, freq_base 10000. */
struct tiny_llama tiny_llama_default(void);
/* Replaces a file of that name. Ends the program when it cannot be written. */
void tiny_llama_write(const struct tiny_llama *tiny, const char *path);

#endif
