/* SPDX-License-Identifier: MIT
 * Products of bytes: acc[lane] += sum over i of w[lane][i] x[i], four unsigned bytes of each lane's weights
 * times the same four signed bytes of x
 *
 *   w     lane 0: w0 w1 w2 w3 | lane 1: w0 w1 w2 w3 | ... lane 15      as packed panels hold them
 *   x     x0 x1 x2 x3, one word, for all lanes
 *
 * Three ways to the same integers: the host chooses one with -D TFM_INT8_WAY and has the kernel below
 * prove it before it is used. The first needs an instruction that the OpenCL compiler need not know, the
 * second a feature of the device, the third nothing. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif
#define TFM_INT8_CL

#define TFM_INT8_PLAIN 0
#define TFM_INT8_DOT   1 /* cl_khr_integer_dot_product */
#define TFM_INT8_ASM   2 /* inline assembly: vpdpbusd on 512 bits */
#ifndef TFM_INT8_WAY
#define TFM_INT8_WAY TFM_INT8_PLAIN
#endif

TFM_INLINE int16 tfm_int8_dot(int16 acc, uint16 w, __global const int *x)
{
#if TFM_INT8_WAY == TFM_INT8_ASM
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(w), "m"(*x));
    return acc;
#elif TFM_INT8_WAY == TFM_INT8_DOT
    const uint v = (uint)*x;
#define TFM_INT8_LANE(i) acc.s##i += dot_4x8packed_us_int(w.s##i, v)
    TFM_INT8_LANE(0);
    TFM_INT8_LANE(1);
    TFM_INT8_LANE(2);
    TFM_INT8_LANE(3);
    TFM_INT8_LANE(4);
    TFM_INT8_LANE(5);
    TFM_INT8_LANE(6);
    TFM_INT8_LANE(7);
    TFM_INT8_LANE(8);
    TFM_INT8_LANE(9);
    TFM_INT8_LANE(a);
    TFM_INT8_LANE(b);
    TFM_INT8_LANE(c);
    TFM_INT8_LANE(d);
    TFM_INT8_LANE(e);
    TFM_INT8_LANE(f);
    return acc;
#else
    const int v = *x;
#pragma unroll
    for (int i = 0; i < 4; i++)
        acc += as_int16((w >> (uint16)(8 * i)) & 255u) * (int16)((v << (24 - 8 * i)) >> 24);
    return acc;
#endif
}

#ifndef TFM_PERSISTENT
/* The proof: w [n][16] words, x [n] words, y [16] the sums over all of them. */
__kernel void tfm_run_int8_proof(__global const uint *w, __global const int *x, __global int *y,
                                 uint n)
{
    int16 acc = 0;

    for (uint i = 0; i < n; i++)
        acc = tfm_int8_dot(acc, vload16(i, w), x + i);
    vstore16(acc, 0, y);
}
#endif
