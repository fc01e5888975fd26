/* SPDX-License-Identifier: MIT
 * Byte-pair encoding (Sennrich et al., arXiv:1508.07909). Short words are scanned again after each
 * merge; long ones take a heap over a linked list, so that a megabyte of one letter is no problem.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/core/checked.h"
#include "lib/llm/bpe.h"
#include "lib/llm/hash.h"
#include "lib/llm/text.h"

enum { SHORT_WORD = 40 };

#define NO_MERGE UINT64_MAX

static uint64_t pair_of(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* Rank and merged id of a pair, or NO_MERGE. */
static uint64_t lookup(const struct tfm__bpe *bpe, int32_t left, int32_t right)
{
    uint64_t pair = pair_of(left, right);
    size_t at = tfm__hash_mix(pair) & bpe->mask;

    for (int step = 0; step < TFM__HASH_PROBES; step++) {
        if (bpe->slots[at].pair == pair)
            return bpe->slots[at].result;
        if (bpe->slots[at].pair == UINT64_MAX)
            return NO_MERGE;
        at = (at + 1) & bpe->mask;
    }
    return NO_MERGE;
}

static enum tfm_status bad_merge(const struct tfm_gguf *gguf, size_t rank, struct tfm_text merge,
                                 const char *what, struct tfm_error *err)
{
    struct tfm__quoted quoted;
    return tfm_error_set(err, TFM_STATUS_FORMAT, "%s: tokenizer.ggml.merges: merge %zu %s: %s",
                         tfm_gguf_path(gguf), rank, tfm__text_quote(merge, &quoted), what);
}

/* Enters the merge "left right" of that rank. */
static enum tfm_status enter(struct tfm__bpe *bpe, const struct tfm__vocabulary *vocabulary,
                             struct tfm_text merge, size_t rank, const struct tfm_gguf *gguf,
                             struct tfm_error *err)
{
    enum { MERGE_MAX_BYTES = 2049 }; /* two pieces and the blank */
    char bytes[MERGE_MAX_BYTES];
    const char *blank = merge.size ? memchr(merge.data, ' ', merge.size) : NULL;
    struct tfm_text left = {merge.data, 0}, right = {merge.data, 0};
    size_t n_left, n_right, at;
    int32_t left_id, right_id, id;
    uint64_t pair;

    if (merge.size > MERGE_MAX_BYTES)
        return bad_merge(gguf, rank, merge, "too long", err);
    if (!blank)
        return bad_merge(gguf, rank, merge, "must be two tokens with a blank between them", err);
    left.size = (size_t)(blank - merge.data);
    right.data = blank + 1;
    right.size = merge.size - left.size - 1;
    if (left.size == 0 || right.size == 0 || tfm__alphabet_decode(left, bytes, &n_left) != 0 ||
        tfm__alphabet_decode(right, bytes + n_left, &n_right) != 0)
        return bad_merge(gguf, rank, merge, "must be two tokens with a blank between them", err);
    left_id = tfm__vocabulary_find(vocabulary, bytes, n_left);
    right_id = tfm__vocabulary_find(vocabulary, bytes + n_left, n_right);
    id = tfm__vocabulary_find(vocabulary, bytes, n_left + n_right);
    if (left_id < 0 || right_id < 0 || id < 0)
        return bad_merge(gguf, rank, merge,
                         left_id < 0    ? "its left half is no token"
                         : right_id < 0 ? "its right half is no token"
                                        : "its result is no token",
                         err);
    pair = pair_of(left_id, right_id);
    at = tfm__hash_mix(pair) & bpe->mask;
    for (int step = 0; bpe->slots[at].pair != UINT64_MAX; step++) {
        if (bpe->slots[at].pair == pair)
            return bad_merge(gguf, rank, merge, "is there twice", err);
        if (step == TFM__HASH_PROBES - 1)
            return bad_merge(gguf, rank, merge, "collides with too many others: refused", err);
        at = (at + 1) & bpe->mask;
    }
    bpe->slots[at].pair = pair;
    bpe->slots[at].result = (uint64_t)rank << 32 | (uint32_t)id;
    return TFM_STATUS_OK;
}

enum tfm_status tfm__bpe_init(struct tfm__bpe *bpe, const struct tfm__vocabulary *vocabulary,
                              const struct tfm_gguf *gguf, struct tfm_error *err)
{
    static const char key[] = "tokenizer.ggml.merges";
    struct tfm_gguf_array array;
    struct tfm_text *merges = NULL;
    size_t n_slots;
    enum tfm_status status;

    memset(bpe, 0, sizeof *bpe);
    status = tfm_gguf_get_array(gguf, key, &array, err);
    if (status == TFM_STATUS_NOT_FOUND) {
        tfm_error_clear(err);
        return tfm_error_set(err, TFM_STATUS_FORMAT,
                             "%s: no key '%s', which a gpt2 tokenizer needs", tfm_gguf_path(gguf),
                             key);
    }
    if (status != TFM_STATUS_OK)
        return status;
    if (array.count > INT32_MAX)
        return tfm_error_set(err, TFM_STATUS_FORMAT, "%s: %s has %zu elements, at most %d",
                             tfm_gguf_path(gguf), key, array.count, INT32_MAX);
    merges = calloc(array.count ? array.count : 1, sizeof *merges);
    if (!merges || tfm__hash_size(array.count, &n_slots))
        goto no_memory;
    bpe->slots = calloc(n_slots, sizeof *bpe->slots);
    if (!bpe->slots)
        goto no_memory;
    memset(bpe->slots, 0xff, n_slots * sizeof *bpe->slots);
    bpe->mask = n_slots - 1;
    status = tfm_gguf_array_text(&array, merges, err);
    if (status != TFM_STATUS_OK)
        tfm_error_prefix(err, "%s: %s", tfm_gguf_path(gguf), key);
    for (size_t i = 0; i < array.count && status == TFM_STATUS_OK; i++)
        status = enter(bpe, vocabulary, merges[i], i, gguf, err);
    free(merges);
    return status;
no_memory:
    free(merges);
    return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory for %zu merges",
                         tfm_gguf_path(gguf), array.count);
}

void tfm__bpe_deinit(struct tfm__bpe *bpe)
{
    free(bpe->slots);
}

static void merge_short(const struct tfm__bpe *bpe, int32_t *ids, size_t *count)
{
    uint64_t results[SHORT_WORD]; /* of the pairs (i, i + 1) */
    size_t n = *count;

    for (size_t i = 0; i + 1 < n; i++)
        results[i] = lookup(bpe, ids[i], ids[i + 1]);
    while (n > 1) {
        size_t best = 0;
        /* ranks differ unless the pair is the same: the first of equals is the leftmost */
        for (size_t i = 1; i + 1 < n; i++)
            if (results[i] < results[best])
                best = i;
        if (results[best] == NO_MERGE)
            break;
        ids[best] = (int32_t)(uint32_t)results[best];
        n--;
        memmove(ids + best + 1, ids + best + 2, (n - best - 1) * sizeof *ids);
        memmove(results + best, results + best + 1, (n - best - 1) * sizeof *results);
        if (best > 0)
            results[best - 1] = lookup(bpe, ids[best - 1], ids[best]);
        if (best + 1 < n)
            results[best] = lookup(bpe, ids[best], ids[best + 1]);
    }
    *count = n;
}

/* A long word: symbols in a linked list, candidate pairs in a heap. A heap entry is rank << 32 |
 * position of the left symbol; it counts only while the pair there still has that rank. */
struct long_word {
    const struct tfm__bpe *bpe;
    int32_t *ids;
    uint64_t *results; /* [n] of the pair that begins at a position */
    uint64_t *heap;    /* [2 n] */
    size_t n_heap;
    uint32_t *next, *previous; /* [n]; NOWHERE at the ends */
};

#define NOWHERE UINT32_MAX

static void sift_down(uint64_t *heap, size_t n, size_t at)
{
    uint64_t entry = heap[at];

    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= entry)
            break;
        heap[at] = heap[child];
    }
    heap[at] = entry;
}

static void push(struct long_word *w, uint32_t position)
{
    size_t at = w->n_heap++;
    uint64_t entry = w->results[position] >> 32 << 32 | position;

    for (; at > 0 && w->heap[(at - 1) / 2] > entry; at = (at - 1) / 2)
        w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = entry;
}

static uint64_t pop(struct long_word *w)
{
    uint64_t entry = w->heap[0];

    w->heap[0] = w->heap[--w->n_heap];
    if (w->n_heap > 0)
        sift_down(w->heap, w->n_heap, 0);
    return entry;
}

/* Looks the pair at `position` up again after one of its symbols changed. */
static void renew(struct long_word *w, uint32_t position)
{
    uint32_t right = w->next[position];

    w->results[position] =
        right == NOWHERE ? NO_MERGE : lookup(w->bpe, w->ids[position], w->ids[right]);
    if (w->results[position] != NO_MERGE)
        push(w, position);
}

static void merge_at(struct long_word *w, uint32_t position)
{
    uint32_t gone = w->next[position], right = w->next[gone];

    w->ids[position] = (int32_t)(uint32_t)w->results[position];
    w->results[gone] = NO_MERGE;
    w->next[position] = right;
    if (right != NOWHERE)
        w->previous[right] = position;
    renew(w, position);
    if (w->previous[position] != NOWHERE)
        renew(w, w->previous[position]);
}

/* Cuts the scratch memory into the arrays of a word of n symbols. Returns 1 when out of memory. The
 * heap never holds more than 2 n: n - 1 at the start, each of at most n - 1 merges takes one and
 * adds two. */
static int reserve(struct tfm__bpe_scratch *scratch, size_t n, struct long_word *w)
{
    size_t bytes;

    if (tfm__mul_size(n, 3 * sizeof(uint64_t) + 2 * sizeof(uint32_t), &bytes))
        return 1;
    if (bytes > scratch->bytes) {
        free(scratch->memory);
        scratch->memory = malloc(bytes);
        scratch->bytes = scratch->memory ? bytes : 0;
        if (!scratch->memory)
            return 1;
    }
    w->results = scratch->memory;
    w->heap = w->results + n;
    w->next = (uint32_t *)(w->heap + 2 * n);
    w->previous = w->next + n;
    return 0;
}

static int merge_long(const struct tfm__bpe *bpe, struct tfm__bpe_scratch *scratch, int32_t *ids,
                      size_t *count)
{
    struct long_word w = {.bpe = bpe, .ids = ids};
    size_t n = *count, out = 0;

    if (reserve(scratch, n, &w))
        return 1;
    for (uint32_t i = 0; i < n; i++) {
        w.next[i] = i + 1 < n ? i + 1 : NOWHERE;
        w.previous[i] = i > 0 ? i - 1 : NOWHERE;
        w.results[i] = i + 1 < n ? lookup(bpe, ids[i], ids[i + 1]) : NO_MERGE;
        if (w.results[i] != NO_MERGE)
            w.heap[w.n_heap++] = w.results[i] >> 32 << 32 | i;
    }
    for (size_t i = w.n_heap / 2; i-- > 0;)
        sift_down(w.heap, w.n_heap, i);
    while (w.n_heap > 0) {
        uint64_t entry = pop(&w);
        uint32_t position = (uint32_t)entry;
        if (w.results[position] != NO_MERGE && w.results[position] >> 32 == entry >> 32)
            merge_at(&w, position);
    }
    for (uint32_t i = 0; i != NOWHERE; i = w.next[i])
        ids[out++] = ids[i];
    *count = out;
    return 0;
}

int tfm__bpe_merge_word(const struct tfm__bpe *bpe, struct tfm__bpe_scratch *scratch, int32_t *ids,
                        size_t *n)
{
    if (*n > SHORT_WORD)
        return merge_long(bpe, scratch, ids, n);
    if (*n > 1)
        merge_short(bpe, ids, n);
    return 0;
}
