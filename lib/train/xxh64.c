/* SPDX-License-Identifier: MIT
 * The checksum of checkpoints. */
#include "lib/train/xxh64.h"

#include <string.h>

#include "lib/core/little_endian.h"

#define PRIME_1 UINT64_C(0x9e3779b185ebca87)
#define PRIME_2 UINT64_C(0xc2b2ae3d27d4eb4f)
#define PRIME_3 UINT64_C(0x165667b19e3779f9)
#define PRIME_4 UINT64_C(0x85ebca77c2b2ae63)
#define PRIME_5 UINT64_C(0x27d4eb2f165667c5)

enum { STRIPE = 32 };

static inline uint64_t rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

/* Compilers make one load of it where the machine is little-endian. */
static inline uint64_t word(const unsigned char *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
           (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 |
           (uint64_t)p[7] << 56;
}

static inline uint64_t mix(uint64_t lane, uint64_t input)
{
    return rotate(lane + input * PRIME_2, 31) * PRIME_1;
}

void tfm__xxh64_init(struct tfm__xxh64 *sum)
{
    *sum = (struct tfm__xxh64){.lanes = {PRIME_1 + PRIME_2, PRIME_2, 0, 0 - PRIME_1}};
}

/* All whole stripes; returns where they end. The lanes are locals so that they stay in registers. */
static const unsigned char *stripes(uint64_t lanes[4], const unsigned char *p, size_t n)
{
    uint64_t a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];

    for (; n > 0; n--, p += STRIPE) {
        a = mix(a, word(p));
        b = mix(b, word(p + 8));
        c = mix(c, word(p + 16));
        d = mix(d, word(p + 24));
    }
    lanes[0] = a;
    lanes[1] = b;
    lanes[2] = c;
    lanes[3] = d;
    return p;
}

void tfm__xxh64_add(struct tfm__xxh64 *sum, const void *data, size_t size)
{
    const unsigned char *p = data;
    const size_t held = (size_t)(sum->total % STRIPE);

    if (size == 0)
        return;
    sum->total += size;
    if (held > 0) {
        const size_t more = size < STRIPE - held ? size : STRIPE - held;
        memcpy(sum->rest + held, p, more);
        if (held + more < STRIPE)
            return;
        stripes(sum->lanes, sum->rest, 1);
        p += more;
        size -= more;
    }
    p = stripes(sum->lanes, p, size / STRIPE);
    memcpy(sum->rest, p, size % STRIPE);
}

static uint64_t merged(const uint64_t lanes[4])
{
    uint64_t h =
        rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) + rotate(lanes[3], 18);

    for (int i = 0; i < 4; i++)
        h = (h ^ mix(0, lanes[i])) * PRIME_1 + PRIME_4;
    return h;
}

uint64_t tfm__xxh64_result(const struct tfm__xxh64 *sum)
{
    const unsigned char *p = sum->rest;
    size_t left = (size_t)(sum->total % STRIPE);
    uint64_t h = sum->total < STRIPE ? PRIME_5 : merged(sum->lanes);

    h += sum->total;
    for (; left >= 8; left -= 8, p += 8)
        h = rotate(h ^ mix(0, word(p)), 27) * PRIME_1 + PRIME_4;
    for (; left >= 4; left -= 4, p += 4)
        h = rotate(h ^ tfm__le_load(p, 4) * PRIME_1, 23) * PRIME_2 + PRIME_3;
    for (; left > 0; left--, p++)
        h = rotate(h ^ *p * PRIME_5, 11) * PRIME_1;
    h = (h ^ h >> 33) * PRIME_2;
    h = (h ^ h >> 29) * PRIME_3;
    return h ^ h >> 32;
}

uint64_t tfm__xxh64_of(const void *data, size_t size)
{
    struct tfm__xxh64 sum;

    tfm__xxh64_init(&sum);
    tfm__xxh64_add(&sum, data, size);
    return tfm__xxh64_result(&sum);
}
