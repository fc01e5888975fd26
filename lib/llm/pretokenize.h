/* SPDX-License-Identifier: MIT
 * Pre-tokenizers: text is cut into words, and BPE merges inside of words only. */
#ifndef TFM__LLM_PRETOKENIZE_H
#define TFM__LLM_PRETOKENIZE_H

#include <stddef.h>

#include <tfm/gguf.h>

struct tfm__splitter {
    const char *name; /* value of tokenizer.ggml.pre */
    /* End of the word that begins at text[at], at < size. text is valid UTF-8. */
    size_t (*next)(const unsigned char *text, size_t size, size_t at);
    int whole_words; /* a word that is a token is that token, whatever the merges say */
    int add_bos;     /* if the file does not say */
};

/* NULL when there is none of that name. */
const struct tfm__splitter *tfm__splitter_find(struct tfm_text name);
/* By index, in order; NULL past the last. */
const struct tfm__splitter *tfm__splitter_at(size_t index);

#endif
