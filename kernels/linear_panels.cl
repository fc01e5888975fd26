/* SPDX-License-Identifier: MIT
 * linear, many rows: y = x W^T (+ bias), a matrix product on unpacked panels
 *   x [N, in] F32, weight [out, in] packed (see step.h), bias [out] F32, F16, BF16 or absent,
 *   y [N, out] F32; tile: workspace, `scratch` floats for each part
 *
 *             columns, a pair of panels: 0 ... 15 | 16 ... 31
 *   x rows    +----------------------------------------------+
 *   8 tiles   | 8 x 32 sums in 16 vectors: for each k two    |    the pair is unpacked once into
 *   of rows   | vectors of weights and 8 values of x         |    `tile` [depth][32]; all rows of
 *             +----------------------------------------------+    a part sweep over it
 *
 * Work map: the units are pairs times tiles of 8 rows, pair by pair; a part takes a run of them, so that
 * narrow outputs keep all parts busy. A panel of more than TFM_PANELS_DEPTH values of k is taken in pieces;
 * between them the sums wait in y. Each y is summed over k from left to right, one fma a k. */
#ifndef TFM_UNPACK_CL
#include "unpack.cl"
#endif

#ifndef TFM_PANELS_DEPTH
#define TFM_PANELS_DEPTH 2048
#endif
#define TFM_PANELS_ROWS 8 /* of a tile: as many sums as 32 vector registers hold */

/* 8 x 32 products over `depth` values of k: x [8][stride], of which rows past `last` repeat it, w [depth]
 * [32]; sums [2 * 8]. */
TFM_INLINE void tfm_panels_multiply(__global const float *x, uint stride, uint last,
                                    __global const float *w, uint depth, float16 *sums)
{
    __global const float *row[TFM_PANELS_ROWS];

#pragma unroll
    for (uint t = 0; t < TFM_PANELS_ROWS; t++)
        row[t] = x + (ulong)min(t, last) * stride;
    for (uint k = 0; k < depth; k++) {
        const float16 low = vload16(2 * k, w), high = vload16(2 * k + 1, w);
#pragma unroll
        for (uint t = 0; t < TFM_PANELS_ROWS; t++) {
            const float16 v = row[t][k];
            sums[2 * t] = fma(v, low, sums[2 * t]);
            sums[2 * t + 1] = fma(v, high, sums[2 * t + 1]);
        }
    }
}

static float16 tfm_panels_take(__global const uchar *from, ulong at, uint lanes, uint type)
{
    return lanes >= 16 ? tfm_load16(from, at, type) : tfm_load_tail(from, at, lanes, type);
}

static void tfm_panels_put(float16 v, __global float *to, uint lanes)
{
    if (lanes >= 16)
        tfm_put16(v, 0, to);
    else
        tfm_store_tail(v, (__global uchar *)to, 0, lanes, TFM_STEP_F32);
}

/* Up to 8 rows of y, `columns` of the 32; begun: y already holds the sums of smaller k. */
static void tfm_panels_tile(__global const float *x, uint in, uint last, __global const float *w,
                            uint depth, int begun, const float16 *bias, __global float *y, uint out,
                            uint columns)
{
    const uint low = min(columns, 16u), high = columns - low;
    float16 sums[2 * TFM_PANELS_ROWS];

#pragma unroll
    for (uint t = 0; t < 2 * TFM_PANELS_ROWS; t++)
        sums[t] = 0.0f;
    if (begun) {
#pragma unroll
        for (uint t = 0; t < TFM_PANELS_ROWS; t++) {
            __global const uchar *from = (__global const uchar *)(y + (ulong)min(t, last) * out);
            sums[2 * t] = tfm_panels_take(from, 0, low, TFM_STEP_F32);
            if (high)
                sums[2 * t + 1] = tfm_panels_take(from, 16, high, TFM_STEP_F32);
        }
    }
    tfm_panels_multiply(x, in, last, w, depth, sums);
#pragma unroll
    for (uint t = 0; t < TFM_PANELS_ROWS; t++) {
        if (t <= last) {
            tfm_panels_put(sums[2 * t] + bias[0], y + (ulong)t * out, low);
            if (high)
                tfm_panels_put(sums[2 * t + 1] + bias[1], y + (ulong)t * out + 16, high);
        }
    }
}

/* Tiles [first, end) of one pair. */
static void tfm_panels_pair(__global const float *x, __global const uchar *weight,
                            __global const uchar *bias, __global float *y, __global float *tile,
                            __global const struct tfm_step *s, uint n, uint pair, uint first,
                            uint end)
{
    const uint in = s->width, out = s->out, column = pair * 2 * TFM_PANEL;
    const uint columns = min(out - column, 2 * TFM_PANEL), type = s->type[1];

    for (uint k = 0; k < in; k += TFM_PANELS_DEPTH) {
        const uint depth = min(in - k, (uint)TFM_PANELS_DEPTH);
        float16 b[2] = {0.0f, 0.0f};
        for (uint i = 0; i < 2; i++) {
            if (i * TFM_PANEL >= columns) { /* an odd number of panels */
                for (uint j = 0; j < depth; j++)
                    tfm_put16((float16)(0.0f), 2 * j + i, tile);
                continue;
            }
            tfm_unpack(type, tfm_panel(type, weight, 2 * pair + i, in), k, depth,
                       tile + i * TFM_PANEL, 2 * TFM_PANEL);
            if (s->type[2] != TFM_STEP_NONE && k + depth == in)
                b[i] = tfm_panels_take(bias, column + i * TFM_PANEL, columns - i * TFM_PANEL,
                                       s->type[2]);
        }
        for (uint t = first; t < end; t++) {
            const uint row = t * TFM_PANELS_ROWS;
            tfm_panels_tile(x + (ulong)row * in + k, in, min(n - row, (uint)TFM_PANELS_ROWS) - 1,
                            tile, depth, k > 0, b, y + (ulong)row * out + column, out, columns);
        }
    }
}

static void tfm_linear_panels(__global const float *x, __global const uchar *weight,
                              __global const uchar *bias, __global float *y, __global float *tile,
                              __global const struct tfm_step *s, __global const int *rows,
                              uint part, uint parts)
{
    const uint n = tfm_vectors(s, rows), tiles = (n + TFM_PANELS_ROWS - 1) / TFM_PANELS_ROWS;
    const uint pairs = (s->out + 2 * TFM_PANEL - 1) / (2 * TFM_PANEL);
    const ulong end = tfm_share((ulong)pairs * tiles, part + 1, parts);

    tile += (ulong)part * s->scratch;
    for (ulong unit = tfm_share((ulong)pairs * tiles, part, parts); unit < end;) {
        const uint pair = (uint)(unit / tiles), first = (uint)(unit % tiles);
        const uint last = (uint)min((ulong)tiles, first + (end - unit));
        tfm_panels_pair(x, weight, bias, y, tile, s, n, pair, first, last);
        unit += last - first;
    }
}

__kernel void tfm_run_linear_panels(__global const uchar *x, __global const uchar *weight,
                                    __global const uchar *bias, __global uchar *y,
                                    __global uchar *tile, __global const struct tfm_step *steps,
                                    uint index, __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_linear_panels((__global const float *)(x + s->at[0]), weight + s->at[1], bias + s->at[2],
                      (__global float *)(y + s->at[3]), (__global float *)(tile + s->at[4]), s,
                      rows, get_group_id(0), get_num_groups(0));
}
