/* SPDX-License-Identifier: MIT
 * linear of up to 8 rows with activations of 8 bits: the formula and the bits of linear_int8.cl, straight
 * from the packed weights
 *   x [N, in] F32, weight [out, in] packed, Q4_0, Q4_1 or Q8_0 (see step.h), bias [out] or absent,
 *   y [N, out] F32; own: workspace, `scratch` floats for each part: x as integers
 *
 *   own, a block of T rows: [T][32] q, bytes | [T] e | [T] e (sum of q),  T = 1, 2, 4 or 8: N or a little more
 *
 * Work map: each part makes the integers of all of x for itself, which is cheaper than to wait for
 * another part; then it takes a run of panels. A panel is unpacked in registers, once for all T rows. */
#ifndef TFM_QUANTIZE_CL
#include "quantize.cl"
#endif
#define TFM_LINEAR_INT8_FEW_CL

#define TFM_INT8_FEW_ROWS 8

static uint tfm_int8_few_tile(uint n)
{
    return n > 4 ? 8 : n > 2 ? 4 : n;
}

/* x of n rows; those of a tile that are not there repeat the last. */
static void tfm_int8_few_quantize(__global const float *x, __global uchar *own, uint in, uint n)
{
    const uint tile = tfm_int8_few_tile(n), blocks = in / TFM_BLOCK;

    for (uint r = 0; r < tile; r++) {
        __global const float *from = x + (ulong)min(r, n - 1) * in;
        __global uchar *to = own;
        for (uint b = 0; b < blocks; b++, to += tile * (TFM_BLOCK + 8))
            tfm_int8_quantize_block(from + b * TFM_BLOCK, (__global char *)(to + r * TFM_BLOCK),
                                    (__global float *)(to + tile * TFM_BLOCK) + r, tile);
    }
}

/* products [tile] += four bytes of w times words j of a block's rows. Here and below: a loop with a bound that
 * is a number is unrolled at once; one up to `tile` may keep its array in memory. */
TFM_INLINE void tfm_int8_few_dot(const uint tile, uint16 w, __global const int *q, const uint j,
                                 int16 *products)
{
#pragma unroll
    for (uint t = 0; t < TFM_INT8_FEW_ROWS; t++) {
        if (t < tile)
            products[t] = tfm_int8_dot(products[t], w, q + t * 8 + j);
    }
}

/* sums [tile] += x times one block of a panel. */
TFM_INLINE void tfm_int8_few_block(const uint type, const uint tile, __global const uchar *block,
                                   __global const uchar *own, float16 *sums)
{
    __global const int *q = (__global const int *)own;
    __global const float *e = (__global const float *)(own + tile * TFM_BLOCK);
    __global const uint *from = (__global const uint *)(block + (type == TFM_STEP_Q4_1 ? 64 : 32));
    const float16 d = vload_half16(0, (__global const half *)block);
    float16 m = d * (type == TFM_STEP_Q8_0 ? -128.0f : -8.0f);
    int16 products[TFM_INT8_FEW_ROWS];

    if (type == TFM_STEP_Q4_1)
        m = vload_half16(1, (__global const half *)block);
#pragma unroll
    for (uint t = 0; t < TFM_INT8_FEW_ROWS; t++)
        products[t] = 0;
#pragma unroll
    for (uint j = 0; j < 8; j++) {
        if (type == TFM_STEP_Q8_0) {
            tfm_int8_few_dot(tile, vload16(j, from) ^ 0x80808080u, q, j, products);
        } else if (j < 4) {
            const uint16 w = vload16(j, from);
            tfm_int8_few_dot(tile, w & 0x0f0f0f0fu, q, j, products);
            tfm_int8_few_dot(tile, (w >> 4) & 0x0f0f0f0fu, q, j + 4, products);
        }
    }
#pragma unroll
    for (uint t = 0; t < TFM_INT8_FEW_ROWS; t++) {
        if (t < tile)
            sums[t] = tfm_int8_add(sums[t], products[t], d, m, e[t], e[tile + t]);
    }
}

/* sums [TFM_INT8_FEW_ROWS], of which `tile` count = x times one panel; type and tile are constants to the
 * caller. */
TFM_INLINE void tfm_int8_few_multiply(const uint type, const uint tile, __global const uchar *panel,
                                      __global const uchar *own, uint blocks, float16 *sums)
{
    const uint bytes = (uint)tfm_panel_bytes(type, TFM_BLOCK);

#pragma unroll
    for (uint t = 0; t < TFM_INT8_FEW_ROWS; t++)
        sums[t] = 0.0f;
    for (uint b = 0; b < blocks; b++, panel += bytes, own += tile * (TFM_BLOCK + 8))
        tfm_int8_few_block(type, tile, panel, own, sums);
}

TFM_INLINE void tfm_int8_few_tile_of(const uint type, const uint tile, __global const uchar *panel,
                                     __global const uchar *own, uint blocks, uint n,
                                     __global float *raw)
{
    float16 sums[TFM_INT8_FEW_ROWS];

    tfm_int8_few_multiply(type, tile, panel, own, blocks, sums);
#pragma unroll
    for (uint t = 0; t < TFM_INT8_FEW_ROWS; t++) {
        if (t < tile && t < n)
            tfm_put16(sums[t], t, raw);
    }
}

/* raw [n][16] = x times one panel. */
TFM_INLINE void tfm_int8_few_panel(const uint type, __global const uchar *panel,
                                   __global const uchar *own, uint blocks, uint n,
                                   __global float *raw)
{
    if (n == 1)
        tfm_int8_few_tile_of(type, 1, panel, own, blocks, n, raw);
    else if (n == 2)
        tfm_int8_few_tile_of(type, 2, panel, own, blocks, n, raw);
    else if (n <= 4)
        tfm_int8_few_tile_of(type, 4, panel, own, blocks, n, raw);
    else
        tfm_int8_few_tile_of(type, 8, panel, own, blocks, n, raw);
}

#ifndef TFM_PERSISTENT
/* Panel p for all rows, to y. */
TFM_INLINE void tfm_int8_few_store(const uint type, const uint tile, __global const uchar *panel,
                                   __global const uchar *own, __global const uchar *bias,
                                   __global float *y, uint p, uint n,
                                   __global const struct tfm_step *s)
{
    float16 sums[TFM_INT8_FEW_ROWS];

    tfm_int8_few_multiply(type, tile, panel, own, s->width / TFM_BLOCK, sums);
    tfm_int8_store(tile, sums, bias, y, p * TFM_PANEL, n, s);
}

TFM_INLINE void tfm_linear_int8_few(const uint type, __global const float *x,
                                    __global const uchar *weight, __global const uchar *bias,
                                    __global float *y, __global uchar *own,
                                    __global const struct tfm_step *s, uint n, uint part,
                                    uint parts)
{
    const uint panels = (s->out + TFM_PANEL - 1) / TFM_PANEL, tile = tfm_int8_few_tile(n);
    const uint end = (uint)tfm_share(panels, part + 1, parts);
    const ulong bytes = tfm_panel_bytes(type, s->width);
    uint p = (uint)tfm_share(panels, part, parts);

    if (n == 0 || p == end)
        return;
    tfm_int8_few_quantize(x, own, s->width, n);
    for (; p < end; p++) {
        __global const uchar *panel = weight + p * bytes;
        if (tile == 1)
            tfm_int8_few_store(type, 1, panel, own, bias, y, p, n, s);
        else if (tile == 2)
            tfm_int8_few_store(type, 2, panel, own, bias, y, p, n, s);
        else if (tile == 4)
            tfm_int8_few_store(type, 4, panel, own, bias, y, p, n, s);
        else
            tfm_int8_few_store(type, 8, panel, own, bias, y, p, n, s);
    }
}

__kernel void tfm_run_linear_int8_few(__global const uchar *x, __global const uchar *weight,
                                      __global const uchar *bias, __global uchar *y,
                                      __global uchar *work, __global const struct tfm_step *steps,
                                      uint index, __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint n = tfm_vectors(s, rows), part = get_group_id(0), parts = get_num_groups(0);
    __global const float *from = (__global const float *)(x + s->at[0]);
    __global float *to = (__global float *)(y + s->at[3]);
    __global uchar *own = work + s->at[4] + (ulong)part * s->scratch * sizeof(float);

    weight += s->at[1];
    bias += s->at[2];
    if (s->type[1] == TFM_STEP_Q4_1)
        tfm_linear_int8_few(TFM_STEP_Q4_1, from, weight, bias, to, own, s, n, part, parts);
    else if (s->type[1] == TFM_STEP_Q8_0)
        tfm_linear_int8_few(TFM_STEP_Q8_0, from, weight, bias, to, own, s, n, part, parts);
    else
        tfm_linear_int8_few(TFM_STEP_Q4_0, from, weight, bias, to, own, s, n, part, parts);
}
#endif
