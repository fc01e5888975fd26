/* SPDX-License-Identifier: MIT
 * The tokens of a byte-level vocabulary: their bytes, and the way back from bytes to id. */
#ifndef TFM__LLM_VOCABULARY_H
#define TFM__LLM_VOCABULARY_H

#include <tfm/gguf.h>

/* tokenizer.ggml.token_type */
enum {
    TFM__TOKEN_NORMAL = 1,
    TFM__TOKEN_UNKNOWN = 2,
    TFM__TOKEN_CONTROL = 3,
    TFM__TOKEN_USER = 4,
    TFM__TOKEN_UNUSED = 5,
    TFM__TOKEN_BYTE = 6,
};

struct tfm__vocabulary {
    size_t n;
    char *bytes;             /* of all pieces, one behind the other */
    struct tfm_text *pieces; /* [n] */
    unsigned char *kinds;    /* [n] TFM__TOKEN_* */
    int32_t *slots;          /* [mask + 1] hash table of the tokens that BPE can make; -1 = free */
    size_t mask;
    int32_t byte_ids[256]; /* token of each single byte, -1 = none */
};

/* FORMAT, NOMEM; deinit in any case. */
enum tfm_status tfm__vocabulary_init(struct tfm__vocabulary *vocabulary,
                                     const struct tfm_gguf *gguf, struct tfm_error *err);
void tfm__vocabulary_deinit(struct tfm__vocabulary *vocabulary);

/* Token of exactly these bytes that BPE can make, or -1. */
int32_t tfm__vocabulary_find(const struct tfm__vocabulary *vocabulary, const void *bytes,
                             size_t size);

/* Turns text in GPT-2's alphabet into the bytes that it stands for; out has room for text.size.
 * Returns 1 if a character is not of the alphabet. */
int tfm__alphabet_decode(struct tfm_text text, char *out, size_t *size);
/* The character of the alphabet that stands for a byte, in UTF-8; returns its length, 1 or 2. */
size_t tfm__alphabet_encode(unsigned char byte, char text[2]);
/* 1 if the byte stands for itself: a printable one of Latin-1. */
int tfm__alphabet_printable(unsigned byte);

#endif
