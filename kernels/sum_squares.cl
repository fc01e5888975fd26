/* SPDX-License-Identifier: MIT
 * sum_squares: y[0] = sum of x_i^2; x [width] F32. Two launches: the sums of blocks, then the sum of those; a single
 * block needs the first alone.
 *
 * Work map: a unit is a block of 4096 elements, summed in 32 lanes and a tail; the blocks' sums are summed in 16
 * lanes and a tail by one part. The order depends on the width alone. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif

#define TFM_SUM_SQUARES_BLOCK 4096u

__kernel void tfm_run_sum_squares(__global const uchar *x, __global uchar *sums,
                                  __global const struct tfm_step *steps, uint index,
                                  __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint part = (uint)get_global_id(0), parts = (uint)get_global_size(0);
    const uint width = s->width;
    const uint blocks = (width + TFM_SUM_SQUARES_BLOCK - 1) / TFM_SUM_SQUARES_BLOCK;
    const uint end = (uint)tfm_share(blocks, part + 1, parts);
    __global const float *from = (__global const float *)(x + s->at[0]);
    __global float *to = (__global float *)(sums + s->at[1]);

    for (uint b = (uint)tfm_share(blocks, part, parts); b < end && tfm_rows(s, rows) > 0; b++) {
        const uint first = b * TFM_SUM_SQUARES_BLOCK;
        const uint n = min(width - first, TFM_SUM_SQUARES_BLOCK);
        float16 even = 0.0f, odd = 0.0f;
        float tail = 0.0f;
        uint i = 0;
        for (; i + 32 <= n; i += 32) {
            const float16 p = vload16(0, from + first + i), q = vload16(0, from + first + i + 16);
            even = fma(p, p, even);
            odd = fma(q, q, odd);
        }
        for (; i < n; i++)
            tail = fma(from[first + i], from[first + i], tail);
        to[b] = tfm_sum16(even + odd) + tail;
    }
}

/* sums [width] -> y [1] */
__kernel void tfm_run_sum_squares_blocks(__global const uchar *sums, __global uchar *y,
                                         __global const struct tfm_step *steps, uint index,
                                         __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    __global const float *from = (__global const float *)(sums + s->at[0]);
    const uint width = s->width;
    float16 lanes = 0.0f;
    float tail = 0.0f;
    uint i = 0;

    if (get_global_id(0) > 0 || tfm_rows(s, rows) == 0)
        return;
    for (; i + 16 <= width; i += 16)
        lanes += vload16(0, from + i);
    for (; i < width; i++)
        tail += from[i];
    *(__global float *)(y + s->at[1]) = tfm_sum16(lanes) + tail;
}
