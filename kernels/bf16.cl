/* SPDX-License-Identifier: MIT
 * Products of bf16: acc[lane] += w[lane][0] x[0] + w[lane][1] x[1], sums in f32
 *
 *   w     lane 0: w0 w1 | lane 1: w0 w1 | ... lane 15      two values of k that follow one another in a word,
 *   x     x0 x1, one word, for all lanes                   the first in its low half
 *
 * Two ways: the host chooses one with -D TFM_BF16_WAY and has the kernel below prove it before it is used. The
 * first needs an instruction that the OpenCL compiler need not know, the second nothing. The first takes and
 * leaves numbers below the normal ones as 0. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif
#define TFM_BF16_CL

#define TFM_BF16_PLAIN 0
#define TFM_BF16_ASM   1 /* inline assembly: vdpbf16ps on 512 bits */

#ifdef TFM_BF16_WAY
TFM_INLINE float16 tfm_bf16_dot(float16 acc, uint16 w, uint x)
{
#if TFM_BF16_WAY == TFM_BF16_ASM
    const uint16 all = x;
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(acc) : "v"(w), "v"(all));
    return acc;
#else
    acc = fma(as_float16(w & 0xffff0000u), (float16)(as_float(x & 0xffff0000u)), acc);
    return fma(as_float16(w << 16), (float16)(as_float(x << 16)), acc);
#endif
}

/* Rounded to nearest even, in the low halves; a NaN stays one. */
TFM_INLINE uint16 tfm_bf16_round(float16 value)
{
#if TFM_BF16_WAY == TFM_BF16_ASM
    ushort16 rounded;
    __asm__("vcvtneps2bf16 %1, %0" : "=v"(rounded) : "v"(value));
    return convert_uint16(rounded);
#else
    return convert_uint16(tfm_to_bf16x16(value));
#endif
}

/* 32 values as they follow one another, low before high. */
TFM_INLINE uint16 tfm_bf16_join(float16 low, float16 high)
{
#if TFM_BF16_WAY == TFM_BF16_ASM
    uint16 joined;
    __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(joined) : "v"(high), "v"(low));
    return joined;
#else
    return as_uint16(tfm_join(as_float8(tfm_to_bf16x16(low)), as_float8(tfm_to_bf16x16(high))));
#endif
}

/* c is written soon: a processor gets it while it does something else. */
TFM_INLINE void tfm_bf16_fetch(__global float *c)
{
#if TFM_BF16_WAY == TFM_BF16_ASM
    __asm__ volatile("prefetchw %0" : : "m"(*c));
#else
    prefetch(c, 16);
#endif
}

/* The proof: w [n][16] words, x [n] words, y [16] the sums over all of them; f [n][16] floats, g [n][16] rounded one
 * by one, h [n][16] as they follow one another, then the same negative. */
__kernel void tfm_run_bf16_proof(__global const uint *w, __global const uint *x, __global float *y,
                                 __global const float *f, __global uint *g, __global uint *h,
                                 uint n)
{
    float16 acc = 0.0f;

    for (uint i = 0; i < n; i++) {
        acc = tfm_bf16_dot(acc, vload16(i, w), x[i]);
        vstore16(tfm_bf16_round(vload16(i, f)), i, g);
        vstore16(tfm_bf16_join(vload16(i, f), -vload16(i, f)), i, h);
    }
    vstore16(acc, 0, y);
}
#endif
