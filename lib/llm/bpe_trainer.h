/* SPDX-License-Identifier: MIT
 * A vocabulary while it is trained: what bpe_train.c, bpe_symbols.c and bpe_put.c share. */
#ifndef TFM__LLM_BPE_TRAINER_H
#define TFM__LLM_BPE_TRAINER_H

#include <tfm/bpe_train.h>

#include "lib/llm/bpe_pairs.h"
#include "lib/llm/pretokenize.h"
#include "lib/llm/words.h"

struct tfm__piece {
    size_t at, size; /* in bytes */
};

struct tfm_bpe_trainer {
    struct tfm_bpe_options options; /* its texts are copies */
    char *bos, *eos;
    const struct tfm__splitter *splitter;
    struct tfm__words words;
    size_t text_bytes;
    int done;

    struct tfm__bytes bytes;   /* of the tokens */
    struct tfm__piece *pieces; /* [n of vocab] */
    size_t n, n_control;
    int32_t *merges; /* [2 n_merges] */
    size_t n_merges, merges_capacity;
    int32_t *slots; /* [mask + 1] from bytes to merged token; -1 = free */
    size_t mask;

    /* ---- while it runs ---- */
    int32_t *symbols;  /* [n_symbols] */
    uint32_t *word_of; /* [n_symbols] */
    size_t n_symbols;
    struct tfm__pairs pairs;
    uint32_t *touched; /* [n_touched] pairs that became more frequent in this step */
    size_t n_touched, touched_capacity;
    uint32_t step;
};

enum tfm_status tfm__bpe_no_memory(struct tfm_error *err);

/* The slot of the token of these bytes, or the free one where it belongs. */
size_t tfm__bpe_probe(const struct tfm_bpe_trainer *t, const unsigned char *bytes, size_t size);

/* Lays the words out and counts all pairs. OUT_OF_RANGE: too many; NOMEM. */
enum tfm_status tfm__bpe_lay_out(struct tfm_bpe_trainer *t, struct tfm_error *err);
/* Makes the pair the token `id` wherever it stands, from left to right, as the encoder merges: of "aaa" the first
 * two. Returns 1 when out of memory. */
int tfm__bpe_merge_all(struct tfm_bpe_trainer *t, uint32_t pair, int32_t id);

#endif
