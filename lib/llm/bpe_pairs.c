/* SPDX-License-Identifier: MIT
 * A hash table of pairs and a heap of candidates. A count that fell leaves its entry where it is: the
 * entry is put right when it comes up. So every pair stands in the heap at least as high as it should. */
#include <stdlib.h>

#include "lib/core/checked.h"
#include "lib/llm/bpe_pairs.h"
#include "lib/llm/hash.h"

static size_t probe(const struct tfm__pairs *pairs, int32_t left, int32_t right)
{
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t at = tfm__hash_mix(key) & pairs->mask;

    for (; pairs->slots[at]; at = (at + 1) & pairs->mask) {
        const struct tfm__pair *pair = &pairs->list[pairs->slots[at] - 1];
        if (pair->left == left && pair->right == right)
            break;
    }
    return at;
}

static int grow(struct tfm__pairs *pairs)
{
    const size_t capacity = pairs->capacity ? 2 * pairs->capacity : 4096;
    size_t n_slots, bytes;

    if (capacity > UINT32_MAX / 2 || tfm__hash_size(capacity, &n_slots) ||
        tfm__mul_size(capacity, sizeof *pairs->list, &bytes))
        return 1;
    struct tfm__pair *list = realloc(pairs->list, bytes);
    if (list)
        pairs->list = list;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!list || !slots) {
        free(slots);
        return 1;
    }
    free(pairs->slots);
    pairs->slots = slots;
    pairs->mask = n_slots - 1;
    pairs->capacity = capacity;
    for (uint32_t i = 0; i < pairs->n; i++)
        slots[probe(pairs, list[i].left, list[i].right)] = i + 1;
    return 0;
}

uint32_t tfm__pairs_find(struct tfm__pairs *pairs, int32_t left, int32_t right)
{
    if (pairs->n == pairs->capacity && grow(pairs))
        return UINT32_MAX;
    const size_t slot = probe(pairs, left, right);
    if (!pairs->slots[slot]) {
        pairs->list[pairs->n] = (struct tfm__pair){.left = left, .right = right, .rank = -1};
        pairs->slots[slot] = (uint32_t)++pairs->n;
    }
    return pairs->slots[slot] - 1;
}

int tfm__pair_put(struct tfm__pair *pair, uint32_t place)
{
    size_t bytes;

    if (pair->n == pair->capacity) {
        const size_t capacity = pair->capacity ? 2 * pair->capacity : 4;
        uint32_t *places =
            tfm__mul_size(capacity, sizeof *places, &bytes) ? NULL : realloc(pair->places, bytes);
        if (!places)
            return 1;
        pair->places = places;
        pair->capacity = capacity;
    }
    pair->places[pair->n++] = place;
    return 0;
}

static uint64_t urgency(const struct tfm__pair *pair)
{
    return pair->count && pair->rank >= 0 ? UINT64_MAX - (uint32_t)pair->rank : pair->count;
}

/* 1 if a is to be merged before b. */
static int before(const struct tfm__pairs *pairs, struct tfm__pair_entry a,
                  struct tfm__pair_entry b)
{
    const struct tfm__pair *x = &pairs->list[a.pair], *y = &pairs->list[b.pair];

    if (a.urgency != b.urgency)
        return a.urgency > b.urgency;
    return x->left != y->left ? x->left < y->left : x->right < y->right;
}

static int push(struct tfm__pairs *pairs, struct tfm__pair_entry entry)
{
    size_t at = pairs->n_heap, bytes;

    if (at == pairs->heap_capacity) {
        const size_t capacity = at ? 2 * at : 4096;
        struct tfm__pair_entry *heap =
            tfm__mul_size(capacity, sizeof *heap, &bytes) ? NULL : realloc(pairs->heap, bytes);
        if (!heap)
            return 1;
        pairs->heap = heap;
        pairs->heap_capacity = capacity;
    }
    pairs->n_heap++;
    for (; at > 0 && before(pairs, entry, pairs->heap[(at - 1) / 2]); at = (at - 1) / 2)
        pairs->heap[at] = pairs->heap[(at - 1) / 2];
    pairs->heap[at] = entry;
    return 0;
}

int tfm__pairs_push(struct tfm__pairs *pairs, uint32_t pair)
{
    return push(pairs, (struct tfm__pair_entry){urgency(&pairs->list[pair]), pair});
}

/* Puts `entry` in the place of the first one. */
static void replace_first(struct tfm__pairs *pairs, struct tfm__pair_entry entry)
{
    size_t at = 0;

    for (size_t child; (child = 2 * at + 1) < pairs->n_heap; at = child) {
        if (child + 1 < pairs->n_heap && before(pairs, pairs->heap[child + 1], pairs->heap[child]))
            child++;
        if (!before(pairs, pairs->heap[child], entry))
            break;
        pairs->heap[at] = pairs->heap[child];
    }
    pairs->heap[at] = entry;
}

uint32_t tfm__pairs_pop(struct tfm__pairs *pairs)
{
    while (pairs->n_heap > 0) {
        const struct tfm__pair_entry first = pairs->heap[0];
        const uint64_t now = urgency(&pairs->list[first.pair]);
        if (now > 0 && now < first.urgency) {
            replace_first(pairs, (struct tfm__pair_entry){now, first.pair});
            continue;
        }
        const struct tfm__pair_entry last = pairs->heap[--pairs->n_heap];
        if (pairs->n_heap > 0)
            replace_first(pairs, last);
        if (now > 0 && now == first.urgency)
            return first.pair;
        /* it is gone, or a later entry of it counts */
    }
    return UINT32_MAX;
}

void tfm__pairs_deinit(struct tfm__pairs *pairs)
{
    for (size_t i = 0; i < pairs->n; i++)
        free(pairs->list[i].places);
    free(pairs->list);
    free(pairs->slots);
    free(pairs->heap);
}
