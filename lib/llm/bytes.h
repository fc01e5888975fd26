/* SPDX-License-Identifier: MIT
 * Bytes that grow, little-endian numbers in them. */
#ifndef TFM__LLM_BYTES_H
#define TFM__LLM_BYTES_H

#include <stdlib.h>
#include <string.h>

#include "lib/core/checked.h"

/* Zero one to begin, free(data) to end. */
struct tfm__bytes {
    unsigned char *data;
    size_t size, capacity;
    int failed; /* out of memory: later puts do nothing */
};

/* Room for `more` bytes at data + size; NULL when out of memory. */
static inline unsigned char *tfm__bytes_reserve(struct tfm__bytes *bytes, size_t more)
{
    size_t wanted;

    if (bytes->failed)
        return NULL;
    if (more > bytes->capacity - bytes->size || !bytes->data) {
        unsigned char *grown = NULL;
        if (!tfm__add_size(bytes->size, more, &wanted) &&
            !tfm__add_size(wanted, wanted / 2, &wanted) && !tfm__add_size(wanted, 64, &wanted))
            grown = realloc(bytes->data, wanted);
        if (!grown) {
            bytes->failed = 1;
            return NULL;
        }
        bytes->data = grown;
        bytes->capacity = wanted;
    }
    return bytes->data + bytes->size;
}

static inline void tfm__bytes_put(struct tfm__bytes *bytes, const void *data, size_t size)
{
    unsigned char *to = tfm__bytes_reserve(bytes, size);

    if (to && size > 0)
        memcpy(to, data, size);
    if (to)
        bytes->size += size;
}

static inline void tfm__bytes_number(struct tfm__bytes *bytes, uint64_t value, size_t size)
{
    unsigned char le[8];

    for (size_t i = 0; i < sizeof le; i++)
        le[i] = (unsigned char)(value >> (8 * i));
    tfm__bytes_put(bytes, le, size);
}

/* As GGUF has strings: u64 length, then the bytes. */
static inline void tfm__bytes_text(struct tfm__bytes *bytes, const char *text, size_t size)
{
    tfm__bytes_number(bytes, size, 8);
    tfm__bytes_put(bytes, text, size);
}

#endif
