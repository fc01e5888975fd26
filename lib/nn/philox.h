/* SPDX-License-Identifier: MIT
 * Philox 4x32-10: 128 random bits from a 128-bit counter and a 64-bit key (Salmon, Moraes, Dror and Shaw,
 * "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Without state, so any number can be had alone. */
#ifndef TFM__NN_PHILOX_H
#define TFM__NN_PHILOX_H

#include <stdint.h>

struct tfm__philox {
    uint32_t word[4];
};

static inline struct tfm__philox tfm__philox(struct tfm__philox counter, uint64_t key)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xD2511F53u * counter.word[0];
        const uint64_t b = (uint64_t)0xCD9E8D57u * counter.word[2];
        counter = (struct tfm__philox){{(uint32_t)(b >> 32) ^ counter.word[1] ^ k0, (uint32_t)b,
                                        (uint32_t)(a >> 32) ^ counter.word[3] ^ k1, (uint32_t)a}};
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return counter;
}

#endif
