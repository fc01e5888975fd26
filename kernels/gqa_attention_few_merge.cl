/* SPDX-License-Identifier: MIT
 * gqa_attention for few rows: the splits of gqa_attention_few.cl to rows, for the projection behind it.
 *   partial [N H][splits][d + 16] F32: sum, then most and mass of a split; y [N, H d] F32, of a part
 *   y = sum_i e_i sum_i / sum_i e_i mass_i with e_i = exp(most_i - largest most)
 *
 * Work map: none; each part makes all rows for itself, since that is cheaper than waiting for another. */
#ifndef TFM_ATTENTION_FEW_CL
#include "gqa_attention_few.cl"
#endif
#define TFM_ATTENTION_FEW_MERGE_CL

/* `vectors` 16s of y [d] from element i on: the splits of a head, each times exp of its most less the largest,
 * over the sum of their masses times that. */
TFM_INLINE void tfm_few_merge(__global const float *from, uint splits, float base, uint i,
                              const uint vectors, __global float *y)
{
    float16 sum[4], mass = 0.0f;

#pragma unroll
    for (uint b = 0; b < vectors; b++)
        sum[b] = 0.0f;
    for (uint first = 0; first < splits; first += 16) {
        const uint n = min(splits - first, 16u);
        float weight[16], masses[16];
        for (uint j = 0; j < 16; j++) {
            __global const float *end = from + min(j, n - 1) * (TFM_FEW_DIM + 16) + TFM_FEW_DIM;
            weight[j] = j < n ? end[0] - base : -INFINITY;
            masses[j] = end[1];
        }
        const float16 all = tfm_attention_exp(vload16(0, weight));
        mass = fma(all, vload16(0, masses), mass);
        vstore16(all, 0, weight);
        for (uint j = 0; j < n; j++, from += TFM_FEW_DIM + 16) {
#pragma unroll
            for (uint b = 0; b < vectors; b++)
                sum[b] = fma((float16)(weight[j]), vload16(b, from + i), sum[b]);
        }
    }
    const float all = tfm_sum16(mass), factor = all == 0.0f ? 0.0f : 1.0f / all;
#pragma unroll
    for (uint b = 0; b < vectors; b++)
        tfm_put16(sum[b] * factor, b, y + i);
}

/* All rows into the scratch of this part. o: partial, scratch */
static void tfm_attention_few_merge(__global uchar *const *o, __global const struct tfm_step *s,
                                    __global const int *rows, uint part)
{
    const uint n = tfm_rows(s, rows), wide = TFM_FEW_DIM + 16;
    __global float *y = (__global float *)o[1] + (ulong)part * s->scratch;
    uint slot = 0;

    for (uint row = 0; row < n; row++) {
        const int cell = tfm_cell_of(row, s, rows, &slot);
        const uint splits = cell < 0 ? 0 : (uint)cell / s->cells_a_split + 1;
        for (uint h = 0; h < s->heads; h++, y += TFM_FEW_DIM) {
            const ulong head = (ulong)row * s->heads + h;
            __global const float *from = (__global const float *)o[0] + head * s->splits * wide;
            float most = -INFINITY;
            uint i = 0;
            for (uint split = 0; split < splits; split++)
                most = fmax(most, from[split * wide + TFM_FEW_DIM]);
            const float base = most == -INFINITY ? 0.0f : most;
            for (; i + 64 <= TFM_FEW_DIM; i += 64)
                tfm_few_merge(from, splits, base, i, 4, y);
            for (; i < TFM_FEW_DIM; i += 16)
                tfm_few_merge(from, splits, base, i, 1, y);
        }
    }
}
