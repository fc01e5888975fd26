/* SPDX-License-Identifier: MIT
 * The different words of a text and how often each occurs, in the order in which they were first seen. */
#ifndef TFM__LLM_WORDS_H
#define TFM__LLM_WORDS_H

#include "lib/llm/bytes.h"

struct tfm__word {
    size_t at, size; /* bytes.data[at, at + size) */
    uint64_t count;
};

/* Zero one to begin; deinit to end. */
struct tfm__words {
    struct tfm__bytes bytes;
    struct tfm__word *list; /* [n] */
    size_t n, capacity;
    size_t *slots; /* [mask + 1] index + 1; 0 = free. At most half of them are taken. */
    size_t mask;
};

/* Counts one more occurrence. Returns 1 when out of memory. */
int tfm__words_add(struct tfm__words *words, const unsigned char *word, size_t size);
void tfm__words_deinit(struct tfm__words *words);

#endif
