/* SPDX-License-Identifier: MIT
 * Byte-pair merges: a flat hash table keyed by the pair, and the encoding of one word. */
#ifndef TFM__LLM_BPE_H
#define TFM__LLM_BPE_H

#include "lib/llm/vocabulary.h"

struct tfm__bpe_merge {
    uint64_t pair;   /* left id in the high half, right id in the low; UINT64_MAX = free */
    uint64_t result; /* rank in the high half, merged id in the low */
};

struct tfm__bpe {
    struct tfm__bpe_merge *slots; /* [mask + 1] */
    size_t mask;
};

/* Memory for words that do not fit on the stack; zero it before the first use. */
struct tfm__bpe_scratch {
    void *memory;
    size_t bytes;
};

/* FORMAT, NOMEM; deinit in any case. */
enum tfm_status tfm__bpe_init(struct tfm__bpe *bpe, const struct tfm__vocabulary *vocabulary,
                              const struct tfm_gguf *gguf, struct tfm_error *err);
void tfm__bpe_deinit(struct tfm__bpe *bpe);

/* Merges ids[0, n), the tokens of the single bytes of a word, in place: always the pair of lowest
 * rank, the leftmost of equals. *n becomes the number of tokens that are left. O(n log n). Returns
 * 1 when out of memory. n < 2^31. */
int tfm__bpe_merge_word(const struct tfm__bpe *bpe, struct tfm__bpe_scratch *scratch, int32_t *ids,
                        size_t *n);

#endif
