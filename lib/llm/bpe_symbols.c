/* SPDX-License-Identifier: MIT
 * All different words stand once in one array of symbols, one symbol a byte: the first byte of a token
 * holds its id, the last one (of longer tokens) says the same backwards, so that both neighbours of a token
 * are found without links. A merge touches only the places of its pair. */
#include "lib/llm/bpe_trainer.h"

/* Symbols: an id >= 0 = the first byte of a token; LAST - id = the last byte of a token of several;
 * INSIDE; EDGE = between words. */
enum { INSIDE = -1, LAST = -2, EDGE = INT32_MIN };

static uint64_t count_at(const struct tfm_bpe_trainer *t, size_t place)
{
    return t->words.list[t->word_of[place]].count;
}

/* The pair stands at one more place. Pairs that would become too long a token are not kept. */
static int more(struct tfm_bpe_trainer *t, int32_t left, int32_t right, size_t place)
{
    if (t->pieces[left].size + t->pieces[right].size > TFM_BPE_TOKEN_BYTES)
        return 0;
    const uint32_t index = tfm__pairs_find(&t->pairs, left, right);
    if (index == UINT32_MAX)
        return 1;
    struct tfm__pair *pair = &t->pairs.list[index];
    if (pair->touched != t->step) {
        pair->touched = t->step;
        if (t->n_touched == t->touched_capacity) {
            const size_t capacity = t->touched_capacity ? 2 * t->touched_capacity : 1024;
            uint32_t *touched = realloc(t->touched, capacity * sizeof *touched);
            if (!touched)
                return 1;
            t->touched = touched;
            t->touched_capacity = capacity;
        }
        t->touched[t->n_touched++] = index;
    }
    pair->count += count_at(t, place);
    return tfm__pair_put(pair, (uint32_t)place);
}

/* The pair stands at one place less. It was counted there, so it is in the table. */
static int less(struct tfm_bpe_trainer *t, int32_t left, int32_t right, size_t place)
{
    if (t->pieces[left].size + t->pieces[right].size > TFM_BPE_TOKEN_BYTES)
        return 0;
    const uint32_t index = tfm__pairs_find(&t->pairs, left, right);
    if (index == UINT32_MAX)
        return 1;
    t->pairs.list[index].count -= count_at(t, place);
    return 0;
}

/* What became more frequent in this step goes into the queue. */
static int push_touched(struct tfm_bpe_trainer *t)
{
    for (size_t i = 0; i < t->n_touched; i++)
        if (tfm__pairs_push(&t->pairs, t->touched[i]))
            return 1;
    t->n_touched = 0;
    t->step++;
    return 0;
}

static int32_t byte_token(const struct tfm_bpe_trainer *t, unsigned byte)
{
    return t->slots[tfm__bpe_probe(t, &(unsigned char){(unsigned char)byte}, 1)];
}

enum tfm_status tfm__bpe_lay_out(struct tfm_bpe_trainer *t, struct tfm_error *err)
{
    size_t n = 1, bytes;
    int32_t ids[256];

    for (size_t i = 0; i < t->words.n; i++)
        n += t->words.list[i].size + 1;
    if (n > UINT32_MAX || tfm__mul_size(n, sizeof *t->symbols, &bytes))
        return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE,
                             "%zu bytes of different words, at most %u: take less text", n,
                             UINT32_MAX);
    t->symbols = malloc(bytes);
    t->word_of = malloc(bytes);
    if (!t->symbols || !t->word_of)
        return tfm__bpe_no_memory(err);
    for (unsigned b = 0; b < 256; b++)
        ids[b] = byte_token(t, b);
    t->n_symbols = 0;
    t->symbols[t->n_symbols++] = EDGE;
    t->step = 1;
    for (size_t i = 0; i < t->words.n; i++) {
        const struct tfm__word *word = &t->words.list[i];
        for (size_t k = 0; k < word->size; k++) {
            const size_t at = t->n_symbols++;
            t->symbols[at] = ids[t->words.bytes.data[word->at + k]];
            t->word_of[at] = (uint32_t)i;
            if (k > 0 && more(t, t->symbols[at - 1], t->symbols[at], at - 1))
                return tfm__bpe_no_memory(err);
        }
        t->word_of[t->n_symbols] = (uint32_t)i;
        t->symbols[t->n_symbols++] = EDGE;
    }
    return push_touched(t) ? tfm__bpe_no_memory(err) : TFM_STATUS_OK;
}

static void write_token(struct tfm_bpe_trainer *t, size_t at, int32_t id)
{
    t->symbols[at] = id;
    t->symbols[at + t->pieces[id].size - 1] = LAST - id;
}

/* Merges `left right` at a place if it stands there, and counts what that changes around it. */
static int merge_at(struct tfm_bpe_trainer *t, size_t at, int32_t left, int32_t right, int32_t id)
{
    if (t->symbols[at] != left)
        return 0;
    const size_t middle = at + t->pieces[left].size;
    if (t->symbols[middle] != right)
        return 0;
    const size_t after = middle + t->pieces[right].size;
    const int32_t next = t->symbols[after], before = t->symbols[at - 1];
    int failed = less(t, left, right, at);

    if (before != EDGE) { /* the token in front, whose last byte that is */
        const int32_t previous = before >= 0 ? before : LAST - before;
        const size_t place = at - t->pieces[previous].size;
        failed |= less(t, previous, left, place);
        failed |= more(t, previous, id, place);
    }
    if (next != EDGE) {
        failed |= less(t, right, next, middle);
        failed |= more(t, id, next, at);
    }
    t->symbols[middle] = t->symbols[middle - 1] = INSIDE;
    write_token(t, at, id);
    return failed;
}

static int order_places(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

int tfm__bpe_merge_all(struct tfm_bpe_trainer *t, uint32_t index, int32_t id)
{
    /* the list of pairs moves when it grows, the places do not */
    const int32_t left = t->pairs.list[index].left, right = t->pairs.list[index].right;
    uint32_t *places = t->pairs.list[index].places;
    const size_t n = t->pairs.list[index].n;
    int failed = 0;

    t->pairs.list[index].places = NULL;
    t->pairs.list[index].n = t->pairs.list[index].capacity = 0;
    for (size_t i = 1; i < n; i++)
        if (places[i - 1] > places[i]) { /* it was entered in several steps */
            qsort(places, n, sizeof *places, order_places);
            break;
        }
    for (size_t i = 0; i < n && !failed; i++)
        failed = merge_at(t, places[i], left, right, id);
    free(places);
    return failed || push_touched(t);
}
