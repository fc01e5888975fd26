/* SPDX-License-Identifier: MIT
 * Small byte-level vocabularies for tests of the tokenizer. */
#ifndef TESTS_LLM_TOY_VOCABULARY_H
#define TESTS_LLM_TOY_VOCABULARY_H

#include <tfm/tokenizer.h>

#include "tests/llm/gguf_builder.h"

enum {
    TOY_NORMAL = 1,
    TOY_UNKNOWN = 2,
    TOY_CONTROL = 3,
    TOY_USER = 4,
    TOY_UNUSED = 5,
    TOY_TOKENS_MAX = 1024,
};

struct toy_vocabulary {
    size_t n, n_merges;
    struct tfm_text bytes[TOY_TOKENS_MAX];  /* what each token stands for */
    struct tfm_text tokens[TOY_TOKENS_MAX]; /* as in the file */
    int32_t types[TOY_TOKENS_MAX];
    struct tfm_text merges[TOY_TOKENS_MAX]; /* as in the file */
    int32_t left[TOY_TOKENS_MAX], right[TOY_TOKENS_MAX], result[TOY_TOKENS_MAX];
};

/* Empty; toy_free ends it. */
struct toy_vocabulary *toy_create(void);
void toy_free(struct toy_vocabulary *toy);

/* Appends a token for these bytes and returns its id. Normal ones are written in GPT-2's alphabet. */
int32_t toy_token(struct toy_vocabulary *toy, const void *bytes, size_t size, int32_t type);
/* All 256 single bytes: token id = byte, if it is the first thing that is done. */
void toy_all_bytes(struct toy_vocabulary *toy);
/* Appends the merge of two tokens, and the token for the result if there is none. Returns its id. */
int32_t toy_merge(struct toy_vocabulary *toy, int32_t left, int32_t right);
/* The same by their bytes; both must be there. */
int32_t toy_merge_text(struct toy_vocabulary *toy, const char *left, const char *right);
/* Id of the normal token of these bytes, -1 if there is none. */
int32_t toy_find(const struct toy_vocabulary *toy, const void *bytes, size_t size);

/* Model gpt2, that pre-tokenizer, tokens, types, merges. */
void toy_put(const struct toy_vocabulary *toy, const char *pre, struct gguf_builder *builder);
/* A tokenizer of the vocabulary as toy_put writes it; a fault ends the
 * test. */
struct tfm_tokenizer *toy_tokenizer(const struct toy_vocabulary *toy, const char *pre);
/* A tokenizer from what is in a builder. */
enum tfm_status toy_open(const struct gguf_builder *builder, struct tfm_tokenizer **tokenizer,
                         struct tfm_error *err);

#endif
