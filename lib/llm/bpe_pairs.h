/* SPDX-License-Identifier: MIT
 * The pairs of neighbouring tokens while a vocabulary is trained: how often each occurs, where, and
 * which is to be merged next. */
#ifndef TFM__LLM_BPE_PAIRS_H
#define TFM__LLM_BPE_PAIRS_H

#include <stddef.h>
#include <stdint.h>

struct tfm__pair {
    int32_t left, right;
    int32_t rank;     /* of its merge; -1 = not merged yet */
    uint32_t touched; /* the last step that made it more frequent */
    uint64_t count;   /* occurrences in the text */
    uint32_t *places; /* [n] symbols where it stands or stood, ascending within a step */
    size_t n, capacity;
};

/* A pair as it was when it was entered; it counts only if it still is so. */
struct tfm__pair_entry {
    uint64_t urgency;
    uint32_t pair;
};

struct tfm__pairs {
    struct tfm__pair *list; /* [n] */
    size_t n, capacity;
    uint32_t *slots; /* [mask + 1] index + 1; 0 = free */
    size_t mask;
    struct tfm__pair_entry *heap; /* [n_heap] */
    size_t n_heap, heap_capacity;
};

/* Index of the pair, which is made when it is new; UINT32_MAX when out of memory. */
uint32_t tfm__pairs_find(struct tfm__pairs *pairs, int32_t left, int32_t right);
/* One more place. Returns 1 when out of memory. */
int tfm__pair_put(struct tfm__pair *pair, uint32_t place);
/* Enters the pair into the queue. Returns 1 when out of memory. */
int tfm__pairs_push(struct tfm__pairs *pairs, uint32_t pair);
/* The pair to merge next, UINT32_MAX = none occurs any more. A pair that was merged before comes first, lowest
 * rank first; then the most frequent one; of equals the one of the lower left id, then of the lower
 * right id. */
uint32_t tfm__pairs_pop(struct tfm__pairs *pairs);
void tfm__pairs_deinit(struct tfm__pairs *pairs);

#endif
