/* SPDX-License-Identifier: MIT
 * Hash tables with open addressing over the contents of model files. */
#ifndef TFM__LLM_HASH_H
#define TFM__LLM_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "lib/core/checked.h"

/* Tables are at most half full, so an honest file never comes near this. A file that was made to
 * collide is refused instead of taking quadratic time. */
enum { TFM__HASH_PROBES = 512 };

static inline uint64_t tfm__hash_mix(uint64_t h)
{
    h ^= h >> 32;
    h *= UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 29;
    h *= UINT64_C(0xbf58476d1ce4e5b9);
    return h ^ h >> 32;
}

static inline uint64_t tfm__hash_bytes(const unsigned char *p, size_t n)
{
    uint64_t h = n, word = 0;
    for (; n >= sizeof word; n -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        h = tfm__hash_mix(h ^ word);
    }
    word = 0;
    memcpy(&word, p, n);
    return tfm__hash_mix(h ^ word);
}

/* Size of a table for n entries: a power of two >= 2 n. Returns 1 on overflow. */
static inline int tfm__hash_size(size_t n, size_t *size)
{
    size_t wanted, s = 16;
    if (tfm__mul_size(n, 2, &wanted))
        return 1;
    while (s < wanted)
        if (tfm__mul_size(s, 2, &s))
            return 1;
    *size = s;
    return 0;
}

#endif
