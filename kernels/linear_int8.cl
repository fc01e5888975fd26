/* SPDX-License-Identifier: MIT
 * linear with activations of 8 bits: y = x W^T (+ bias), each block of 32 values of x as integers times one
 * scale; weights Q4_0, Q4_1 or Q8_0 as they are
 *   x [N, in] F32, weight [out, in] packed (see step.h), bias [out] or absent, y [N, out] F32
 *   quants: workspace, x of 8 rows at a time; tile: workspace, `scratch` floats for each part
 *   y[n][o] = sum over blocks of  d e (sum of w q) + m e (sum of q),   x = e q,  e = max |x| / 127
 *   with w in 0..15 or 0..255: Q4_0 has m = -8 d, Q8_0 m = -128 d
 *
 *   quants, a block of 8 rows: [8][32] q, bytes | [8] e | [8] e (sum of q)
 *   tile, a block of 16 columns: [8][16][4] w, bytes | [16] d | [16] m
 *
 * Work map: quantize splits the eights of rows among the parts. The product's units are panels times
 * eights of rows, panel by panel; a part takes a run of them, unpacks a panel once and sweeps its rows over
 * it. Sums of a block are exact integers; blocks are added from left to right. */
#ifndef TFM_QUANTIZE_CL
#include "quantize.cl"
#endif

#define TFM_INT8_ROWS   8
#define TFM_INT8_QUANTS 320 /* bytes of a block of 8 rows */
#define TFM_INT8_SCALES 256 /* where its floats begin */
#define TFM_INT8_TILE   640 /* bytes of a block of 16 columns */

/* ---- x ---- */

static void tfm_int8_quantize(__global const float *x, __global uchar *quants,
                              __global const struct tfm_step *s, __global const int *rows,
                              uint part, uint parts)
{
    const uint n = tfm_vectors(s, rows), in = s->width, blocks = in / TFM_BLOCK;
    const uint eights = (n + TFM_INT8_ROWS - 1) / TFM_INT8_ROWS;
    const uint end = (uint)tfm_share(eights, part + 1, parts);

    for (uint t = (uint)tfm_share(eights, part, parts); t < end; t++) {
        __global uchar *to = quants + (ulong)t * blocks * TFM_INT8_QUANTS;
        for (uint r = 0; r < TFM_INT8_ROWS; r++) { /* the last eight repeats its last row */
            __global const float *from = x + (ulong)min(t * TFM_INT8_ROWS + r, n - 1) * in;
            for (uint b = 0; b < blocks; b++) {
                __global uchar *block = to + b * TFM_INT8_QUANTS;
                tfm_int8_quantize_block(
                    from + b * TFM_BLOCK, (__global char *)(block + r * TFM_BLOCK),
                    (__global float *)(block + TFM_INT8_SCALES) + r, TFM_INT8_ROWS);
            }
        }
    }
}

/* ---- weights ---- */

static void tfm_int8_unpack(uint type, __global const uchar *panel, uint blocks,
                            __global uchar *tile)
{
    for (uint b = 0; b < blocks; b++, tile += TFM_INT8_TILE) {
        const float16 d = vload_half16(0, (__global const half *)panel);
        __global uint *to = (__global uint *)tile;
        __global float *scales = (__global float *)(tile + 512);
        float16 m = d * -8.0f;
        if (type == TFM_STEP_Q8_0) {
            __global const uint *from = (__global const uint *)(panel + 32);
            for (uint j = 0; j < 8; j++)
                tfm_put16_uint(vload16(j, from) ^ 0x80808080u, j, to);
            m = d * -128.0f;
            panel += TFM_PANEL_Q8_0;
        } else {
            const int affine = type == TFM_STEP_Q4_1;
            __global const uint *from = (__global const uint *)(panel + (affine ? 64 : 32));
            for (uint j = 0; j < 4; j++) {
                const uint16 q = vload16(j, from);
                tfm_put16_uint(q & 0x0f0f0f0fu, j, to);
                tfm_put16_uint((q >> 4) & 0x0f0f0f0fu, j + 4, to);
            }
            if (affine)
                m = vload_half16(1, (__global const half *)panel);
            panel += affine ? TFM_PANEL_Q4_1 : TFM_PANEL_Q4_0;
        }
        tfm_put16(d, 0, scales);
        tfm_put16(m, 1, scales);
    }
}

/* ---- product ---- */

/* sums [8]: 8 rows times 16 columns. */
TFM_INLINE void tfm_int8_multiply(__global const uchar *quants, __global const uchar *tile,
                                  uint blocks, float16 *sums)
{
#pragma unroll
    for (uint t = 0; t < TFM_INT8_ROWS; t++)
        sums[t] = 0.0f;
    for (uint b = 0; b < blocks; b++, quants += TFM_INT8_QUANTS, tile += TFM_INT8_TILE) {
        __global const int *q = (__global const int *)quants;
        __global const float *scale = (__global const float *)(quants + TFM_INT8_SCALES);
        __global const float *weight = (__global const float *)(tile + 512);
        int16 products[TFM_INT8_ROWS];
#pragma unroll
        for (uint t = 0; t < TFM_INT8_ROWS; t++)
            products[t] = 0;
#pragma unroll
        for (uint j = 0; j < 8; j++) {
            const uint16 w = vload16(j, (__global const uint *)tile);
#pragma unroll
            for (uint t = 0; t < TFM_INT8_ROWS; t++)
                products[t] = tfm_int8_dot(products[t], w, q + t * 8 + j);
        }
        const float16 d = vload16(0, weight), m = vload16(1, weight);
#pragma unroll
        for (uint t = 0; t < TFM_INT8_ROWS; t++) {
            sums[t] = tfm_int8_add(sums[t], products[t], d, m, scale[t], scale[TFM_INT8_ROWS + t]);
        }
    }
}

/* Eights [first, end) of rows, one panel, unpacked in `tile`. */
static void tfm_int8_panel(__global const uchar *quants, __global const uchar *tile,
                           __global const uchar *bias, __global float *y,
                           __global const struct tfm_step *s, uint n, uint panel, uint first,
                           uint end)
{
    const uint blocks = s->width / TFM_BLOCK;

    for (uint e = first; e < end; e++) {
        const uint row = e * TFM_INT8_ROWS;
        float16 sums[TFM_INT8_ROWS];
        tfm_int8_multiply(quants + (ulong)e * blocks * TFM_INT8_QUANTS, tile, blocks, sums);
        tfm_int8_store(TFM_INT8_ROWS, sums, bias, y + (ulong)row * s->out, panel * TFM_PANEL,
                       n - row, s);
    }
}

static void tfm_linear_int8(__global const uchar *quants, __global const uchar *weight,
                            __global const uchar *bias, __global float *y, __global float *tile,
                            __global const struct tfm_step *s, __global const int *rows, uint part,
                            uint parts)
{
    const uint n = tfm_vectors(s, rows), eights = (n + TFM_INT8_ROWS - 1) / TFM_INT8_ROWS;
    const uint blocks = s->width / TFM_BLOCK, type = s->type[1];
    const ulong units = (ulong)((s->out + TFM_PANEL - 1) / TFM_PANEL) * eights;
    const ulong end = tfm_share(units, part + 1, parts);

    tile += (ulong)part * s->scratch;
    for (ulong unit = tfm_share(units, part, parts); unit < end;) {
        const uint panel = (uint)(unit / eights), first = (uint)(unit % eights);
        const uint last = (uint)min((ulong)eights, first + (end - unit));
        tfm_int8_unpack(type, weight + panel * tfm_panel_bytes(type, s->width), blocks,
                        (__global uchar *)tile);
        tfm_int8_panel(quants, (__global const uchar *)tile, bias, y, s, n, panel, first, last);
        unit += last - first;
    }
}

__kernel void tfm_run_int8_quantize(__global const uchar *x, __global uchar *quants,
                                    __global const struct tfm_step *steps, uint index,
                                    __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_int8_quantize((__global const float *)(x + s->at[0]), quants + s->at[1], s, rows,
                      get_group_id(0), get_num_groups(0));
}

__kernel void tfm_run_linear_int8(__global const uchar *quants, __global const uchar *weight,
                                  __global const uchar *bias, __global uchar *y,
                                  __global uchar *tile, __global const struct tfm_step *steps,
                                  uint index, __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_linear_int8(quants + s->at[0], weight + s->at[1], bias + s->at[2],
                    (__global float *)(y + s->at[3]), (__global float *)(tile + s->at[4]), s, rows,
                    get_group_id(0), get_num_groups(0));
}
