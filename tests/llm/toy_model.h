/* SPDX-License-Identifier: MIT
 * A Llama of 2 layers with random weights, written as a GGUF file: whole programs run on it in
 * milliseconds, without a download. Vocabulary: 256 bytes, merges of a few English words, 3 control
 * tokens. The text it makes has no sense but is the same for the same seed. */
#ifndef TFM_TEST_TOY_MODEL_H
#define TFM_TEST_TOY_MODEL_H

#include <stdint.h>

enum {
    TOY_LAYERS = 2,
    TOY_WIDTH = 64,
    TOY_HEADS = 4,
    TOY_KV_HEADS = 2,
    TOY_HEAD_DIM = 16,
    TOY_FFN_WIDTH = 128,
    TOY_MERGES = 33,
    TOY_VOCAB = 256 + TOY_MERGES + 3, /* 292: no multiple of a block */
    TOY_BOS = TOY_VOCAB - 3,          /* <|endoftext|> */
    TOY_END = TOY_VOCAB - 1,          /* <|im_end|> */
};

struct toy_model {
    uint64_t seed;
    int quantized; /* 0: matrices F32; 1: Q4_1, embedding and head Q8_0, as in the real model's file */
    int tied; /* 1: no head of its own. 0: a head that prefers printable ASCII characters, so that
                         greedy text is made of them */
    int32_t end;      /* the token that ends a text */
    uint32_t context; /* positions */
};

/* seed 1, F32, its own head, TOY_END, 256 positions. */
void toy_model_defaults(struct toy_model *toy);
/* Returns 0, or -1 after it has told on standard error why not. */
int toy_model_write(const struct toy_model *toy, const char *path);

#endif
