/* SPDX-License-Identifier: MIT
 * Counts words in a hash table that grows. */
#include "lib/llm/words.h"
#include "lib/llm/hash.h"

/* The slot of the word, or the free one where it belongs. */
static size_t probe(const struct tfm__words *words, const unsigned char *word, size_t size)
{
    size_t at = tfm__hash_bytes(word, size) & words->mask;

    for (; words->slots[at]; at = (at + 1) & words->mask) {
        const struct tfm__word *there = &words->list[words->slots[at] - 1];
        if (there->size == size && memcmp(words->bytes.data + there->at, word, size) == 0)
            break;
    }
    return at;
}

/* Twice as much room in list and table. */
static int grow(struct tfm__words *words)
{
    const size_t capacity = words->capacity ? 2 * words->capacity : 1024;
    size_t n_slots, bytes;
    size_t *slots = NULL;

    if (tfm__hash_size(capacity, &n_slots) || tfm__mul_size(capacity, sizeof *words->list, &bytes))
        return 1;
    struct tfm__word *list = realloc(words->list, bytes);
    if (list)
        words->list = list;
    slots = calloc(n_slots, sizeof *slots);
    if (!list || !slots) {
        free(slots);
        return 1;
    }
    free(words->slots);
    words->slots = slots;
    words->mask = n_slots - 1;
    words->capacity = capacity;
    for (size_t i = 0; i < words->n; i++)
        slots[probe(words, words->bytes.data + list[i].at, list[i].size)] = i + 1;
    return 0;
}

int tfm__words_add(struct tfm__words *words, const unsigned char *word, size_t size)
{
    if (words->n == words->capacity && grow(words))
        return 1;
    const size_t slot = probe(words, word, size);
    if (words->slots[slot]) {
        words->list[words->slots[slot] - 1].count++;
        return 0;
    }
    const size_t at = words->bytes.size;
    tfm__bytes_put(&words->bytes, word, size);
    if (words->bytes.failed)
        return 1;
    words->list[words->n++] = (struct tfm__word){at, size, 1};
    words->slots[slot] = words->n;
    return 0;
}

void tfm__words_deinit(struct tfm__words *words)
{
    free(words->bytes.data);
    free(words->list);
    free(words->slots);
}
