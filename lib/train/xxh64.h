/* SPDX-License-Identifier: MIT
 * XXH64 with seed 0, a checksum that runs at the speed of memory: four sums side by side over words of 8 bytes. Made by
 * Yann Collet; written here after its specification ("xxHash fast digest algorithm", version 0.1.1, "XXH64 algorithm
 * description"), so that `xxhsum -H1` and the xxhash packages of other languages give the same numbers. */
#ifndef TFM__TRAIN_XXH64_H
#define TFM__TRAIN_XXH64_H

#include <stddef.h>
#include <stdint.h>

struct tfm__xxh64 {
    uint64_t lanes[4], total;
    unsigned char rest[32]; /* the total % 32 bytes that fill no stripe yet */
};

void tfm__xxh64_init(struct tfm__xxh64 *sum);
/* However the bytes are cut into pieces, the result is the same. */
void tfm__xxh64_add(struct tfm__xxh64 *sum, const void *data, size_t size);
uint64_t tfm__xxh64_result(const struct tfm__xxh64 *sum);

/* Of one piece. */
uint64_t tfm__xxh64_of(const void *data, size_t size);

#endif
