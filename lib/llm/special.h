/* SPDX-License-Identifier: MIT
 * Tokens that are recognized when they are written out in text, before any splitting. */
#ifndef TFM__LLM_SPECIAL_H
#define TFM__LLM_SPECIAL_H

#include "lib/llm/vocabulary.h"

struct tfm__special {
    int32_t *ids; /* [n] sorted by bytes */
    size_t n;
    size_t first[257]; /* ids[first[b], first[b + 1]) begin with byte b */
};

/* Takes the user-defined tokens, with `control` the control tokens too. Returns 1 when out of
 * memory; deinit in any case. */
int tfm__special_init(struct tfm__special *special, const struct tfm__vocabulary *vocabulary,
                      int control);
void tfm__special_deinit(struct tfm__special *special);

/* The longest one that stands at the first place where any stands, at or behind `at`: its id,
 * *begin and *end. -1 if there is none. */
int32_t tfm__special_find(const struct tfm__special *special,
                          const struct tfm__vocabulary *vocabulary, const unsigned char *text,
                          size_t size, size_t at, size_t *begin, size_t *end);

#endif
