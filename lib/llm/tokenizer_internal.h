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

#endif
