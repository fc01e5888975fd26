/* SPDX-License-Identifier: MIT
 * f16 and bf16 from and to memory, in integer arithmetic: exact one way, rounded once to nearest
 * even the other. Doubles come in so that f64 -> f16 is not rounded twice. */
#ifndef TFM__CORE_HALF_H
#define TFM__CORE_HALF_H

#include <stdint.h>
#include <string.h>

static inline float tfm__float_from_bits(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, 4);
    return v;
}

static inline float tfm__half_load(const void *src)
{
    uint16_t h;
    memcpy(&h, src, 2);
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    const uint32_t rest = h & 0x7fff;
    if (rest >= 0x7c00) /* infinity, NaN */
        return tfm__float_from_bits(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    if (rest >= 0x400)
        return tfm__float_from_bits(sign | ((rest << 13) + (112u << 23)));
    const float tiny = (float)rest * (1.0f / 16777216); /* subnormal: rest * 2^-24 */
    return sign ? -tiny : tiny;
}

static inline float tfm__bf16_load(const void *src)
{
    uint16_t h;
    memcpy(&h, src, 2);
    return tfm__float_from_bits((uint32_t)h << 16);
}

/* Rounds a double to a float format of `mantissa` stored bits and `bias`, 16 bits wide. */
static inline uint16_t tfm__narrow(double value, int mantissa, int bias)
{
    uint64_t bits;
    memcpy(&bits, &value, 8);
    const int exponent_bits = 15 - mantissa;
    const uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    const uint16_t infinity = (uint16_t)(((1u << exponent_bits) - 1) << mantissa);
    const int raw = (int)(bits >> 52 & 0x7ff);
    const uint64_t fraction = bits & 0xfffffffffffffu;

    if (raw == 0x7ff)
        return (uint16_t)(sign | infinity | (fraction ? 1u << (mantissa - 1) : 0));
    int exponent = raw - 1023 + bias;
    uint64_t significand = fraction | (raw ? 1ull << 52 : 0);
    int shift = 52 - mantissa;
    if (exponent <= 0) { /* subnormal in the target */
        shift += 1 - exponent;
        exponent = 0;
        if (shift > 63)
            return sign;
    } else {
        significand &= ~(1ull << 52);
    }
    const uint64_t half = 1ull << (shift - 1);
    const uint64_t rest = significand & ((half << 1) - 1);
    uint64_t result = ((uint64_t)exponent << mantissa) + (significand >> shift);
    if (rest > half || (rest == half && (result & 1)))
        result++; /* a carry runs into the exponent, as it must */
    return (uint16_t)(sign | (result >= infinity ? infinity : (uint16_t)result));
}

static inline void tfm__half_store(void *dst, double value)
{
    const uint16_t h = tfm__narrow(value, 10, 15);
    memcpy(dst, &h, 2);
}

static inline void tfm__bf16_store(void *dst, double value)
{
    const uint16_t h = tfm__narrow(value, 7, 127);
    memcpy(dst, &h, 2);
}

#endif
