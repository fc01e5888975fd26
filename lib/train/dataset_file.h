/* SPDX-License-Identifier: MIT
 * The head of a token file, as dataset.c reads and dataset_write.c writes it. */
#ifndef TFM__TRAIN_DATASET_FILE_H
#define TFM__TRAIN_DATASET_FILE_H

#include <stddef.h>
#include <stdint.h>

enum {
    TFM__DATASET_VERSION = 1,
    /* places in the head */
    TFM__DATASET_AT_VERSION = 8,
    TFM__DATASET_AT_WIDTH = 12,
    TFM__DATASET_AT_VOCAB = 16,
    TFM__DATASET_AT_TOKENIZER = 24,
    TFM__DATASET_AT_COUNT = 32,
    TFM__DATASET_AT_CHECKSUM = 40,
    TFM__DATASET_HEAD = 48,
};

#define TFM__DATASET_MAGIC "TFMTOKEN"
#define TFM__FNV_BEGIN     UINT64_C(0xcbf29ce484222325)

static inline uint64_t tfm__fnv(uint64_t sum, const unsigned char *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ data[i]) * UINT64_C(0x100000001b3);
    return sum;
}

#endif
