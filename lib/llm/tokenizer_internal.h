/* SPDX-License-Identifier: MIT
 * What a tokenizer is made of. */
#ifndef TFM__LLM_TOKENIZER_INTERNAL_H
#define TFM__LLM_TOKENIZER_INTERNAL_H

#include <tfm/tokenizer.h>

#include "lib/llm/bpe.h"
#include "lib/llm/pretokenize.h"
#include "lib/llm/special.h"
#include "lib/llm/vocabulary.h"

struct tfm_tokenizer {
    struct tfm__vocabulary vocabulary;
    struct tfm__bpe bpe;
    const struct tfm__splitter *splitter;
    struct tfm__special user;    /* user-defined tokens only */
    struct tfm__special special; /* these and control tokens */
    int32_t bos, eos, eot, eom;  /* -1 = none */
    int add_bos;
};

/* go_on is called now and then with the bytes that are done; once it returns 0 encoding ends with CANCELLED. */
struct tfm__encode_watch {
    int (*go_on)(void *context, size_t done, size_t size);
    void *context;
};

/* As tfm_tokenizer_encode; watch NULL = nobody. */
enum tfm_status tfm__tokenizer_encode(const struct tfm_tokenizer *tokenizer, const char *text,
                                      size_t size, unsigned flags,
                                      const struct tfm__encode_watch *watch, int32_t **ids,
                                      size_t *n, struct tfm_error *err);

#endif
