/* SPDX-License-Identifier: MIT
 * Finds written-out tokens: binary search in a sorted list, narrowed byte by byte, so that time
 * does not depend on how many there are. */
#include <stdlib.h>
#include <string.h>

#include "lib/llm/gguf_internal.h"
#include "lib/llm/special.h"
#include "lib/llm/utf8.h"

struct entry {
    struct tfm_text piece;
    int32_t id;
};

static int order(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    int by_text = tfm__text_compare(left->piece, right->piece);
    return by_text ? by_text : (left->id > right->id) - (left->id < right->id);
}

static int wanted(const struct tfm__vocabulary *v, size_t id, int control)
{
    struct tfm_text piece = v->pieces[id];
    int is_control = v->kinds[id] == TFM__TOKEN_CONTROL || v->kinds[id] == TFM__TOKEN_UNKNOWN;

    if (v->kinds[id] != TFM__TOKEN_USER && !(control && is_control))
        return 0;
    /* text is cut around these, and has to stay valid UTF-8 */
    return piece.size > 0 &&
           tfm__utf8_check((const unsigned char *)piece.data, piece.size) == piece.size;
}

int tfm__special_init(struct tfm__special *special, const struct tfm__vocabulary *vocabulary,
                      int control)
{
    struct entry *entries;
    size_t n = 0;

    memset(special, 0, sizeof *special);
    for (size_t i = 0; i < vocabulary->n; i++)
        n += (size_t)wanted(vocabulary, i, control);
    if (n == 0)
        return 0;
    entries = calloc(n, sizeof *entries);
    special->ids = calloc(n, sizeof *special->ids);
    if (!entries || !special->ids) {
        free(entries);
        return 1;
    }
    for (size_t i = 0; i < vocabulary->n; i++)
        if (wanted(vocabulary, i, control)) {
            entries[special->n].piece = vocabulary->pieces[i];
            entries[special->n++].id = (int32_t)i;
        }
    qsort(entries, n, sizeof *entries, order);
    for (size_t i = 0; i < n; i++) {
        special->ids[i] = entries[i].id;
        special->first[(unsigned char)entries[i].piece.data[0] + 1] = i + 1;
    }
    for (size_t b = 1; b <= 256; b++)
        if (special->first[b] < special->first[b - 1])
            special->first[b] = special->first[b - 1];
    free(entries);
    return 0;
}

void tfm__special_deinit(struct tfm__special *special)
{
    free(special->ids);
}

/* First index in [low, high) whose byte at `depth` is >= byte; all share the bytes before. */
static size_t lower(const struct tfm__special *special, const struct tfm__vocabulary *vocabulary,
                    size_t low, size_t high, size_t depth, unsigned byte)
{
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct tfm_text piece = vocabulary->pieces[special->ids[middle]];
        if (depth >= piece.size || (unsigned char)piece.data[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The longest one that stands at text[at], or -1. */
static int32_t match(const struct tfm__special *special, const struct tfm__vocabulary *vocabulary,
                     const unsigned char *text, size_t size, size_t at, size_t *end)
{
    size_t low = special->first[text[at]], high = special->first[text[at] + 1];
    int32_t found = -1;

    for (size_t depth = 1; low < high; depth++) {
        /* sorted: the one that ends here comes first */
        if (vocabulary->pieces[special->ids[low]].size == depth) {
            found = special->ids[low];
            *end = at + depth;
        }
        if (at + depth == size)
            break;
        low = lower(special, vocabulary, low, high, depth, text[at + depth]);
        high = lower(special, vocabulary, low, high, depth, text[at + depth] + 1U);
    }
    return found;
}

int32_t tfm__special_find(const struct tfm__special *special,
                          const struct tfm__vocabulary *vocabulary, const unsigned char *text,
                          size_t size, size_t at, size_t *begin, size_t *end)
{
    if (special->n == 0)
        return -1;
    for (; at < size; at++) {
        int32_t id;
        if (special->first[text[at]] == special->first[text[at] + 1])
            continue;
        id = match(special, vocabulary, text, size, at, end);
        if (id >= 0) {
            *begin = at;
            return id;
        }
    }
    return -1;
}
