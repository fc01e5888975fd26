/* SPDX-License-Identifier: MIT
 * Unsigned little-endian numbers in files, of up to 8 bytes and anywhere. */
#ifndef TFM__CORE_LITTLE_ENDIAN_H
#define TFM__CORE_LITTLE_ENDIAN_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t tfm__le_load(const unsigned char *p, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

static inline void tfm__le_store(unsigned char *p, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)(value >> (8 * i));
}

#endif
