/* SPDX-License-Identifier: MIT
 * linear, many rows: y = x W^T (+ bias), a matrix product on unpacked panels
 *   x [N, in] F32, weight [out, in] packed (see step.h), bias [out] F32, F16, BF16 or absent,
 *   y [N, out] F32; tile: workspace, `scratch` floats for each part
 *
 *             columns, a pair of panels: 0 ... 15 | 16 ... 31
 *   x rows    +----------------------------------------------+
 *   8 of a    | 8 x 32 sums in 16 vectors: for each k two    |    the pair is unpacked once into
 *   tile      | vectors of weights and 8 values of x         |    `tile` [2][depth][16]; all rows of
 *             +----------------------------------------------+    a part sweep over it; F32 is read
 *                                                                 as it lies
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

/* 8 x 32 products over `depth` values of k: x [8][stride], of which rows past `last` repeat it, w: two
 * panels [depth][16]; sums [2 * 8]. */
TFM_INLINE void tfm_panels_multiply(__global const float *x, uint stride, uint last,
                                    __global const float *w0, __global const float *w1, uint depth,
                                    float16 *sums)
{
    __global const float *row[TFM_PANELS_ROWS];

#pragma unroll
    for (uint t = 0; t < TFM_PANELS_ROWS; t++)
        row[t] = x + (ulong)min(t, last) * stride;
    for (uint k = 0; k < depth; k++) {
        const float16 low = vload16(k, w0), high = vload16(k, w1);
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
static void tfm_panels_tile(__global const float *x, uint in, uint last, __global const float *w0,
                            __global const float *w1, uint depth, int begun, const float16 *bias,
                            __global float *y, uint out, uint columns)
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
    tfm_panels_multiply(x, in, last, w0, w1, depth, sums);
#pragma unroll
    for (uint t = 0; t < TFM_PANELS_ROWS; t++) {
        if (t <= last) {
            tfm_panels_put(sums[2 * t] + bias[0], y + (ulong)t * out, low);
            if (high)
                tfm_panels_put(sums[2 * t + 1] + bias[1], y + (ulong)t * out + 16, high);
        }
    }
}

/* Values [k, k + depth) of a panel: F32 as it lies, other types unpacked to `tile`. */
static __global const float *tfm_panels_weights(__global const uchar *weight, uint type, uint panel,
                                                uint in, uint k, uint depth, __global float *tile)
{
    __global const uchar *from = tfm_panel(type, weight, panel, in);

    if (type == TFM_STEP_F32)
        return (__global const float *)from + (ulong)k * TFM_PANEL;
    tfm_unpack(type, from, k, depth, tile, TFM_PANEL);
    return tile;
}

/* Tiles [first, end) of one pair. */
static void tfm_panels_pair(__global const float *x, __global const uchar *weight,
                            __global const uchar *bias, __global float *y, __global float *tile,
                            __global const struct tfm_step *s, uint n, uint pair, uint first,
                            uint end)
{
    const uint in = s->width, out = s->out, column = pair * 2 * TFM_PANEL;
    const uint columns = min(out - column, 2 * TFM_PANEL), type = s->type[1];
    const int both = columns > TFM_PANEL;

    for (uint k = 0; k < in; k += TFM_PANELS_DEPTH) {
        const uint depth = min(in - k, (uint)TFM_PANELS_DEPTH);
        __global const float *w0, *w1;
        float16 b[2] = {0.0f, 0.0f};
        w0 = tfm_panels_weights(weight, type, 2 * pair, in, k, depth, tile);
        w1 = w0; /* an odd number of panels: these sums are dropped */
        if (both)
            w1 = tfm_panels_weights(weight, type, 2 * pair + 1, in, k, depth,
                                    tile + depth * TFM_PANEL);
        if (s->type[2] != TFM_STEP_NONE && k + depth == in) {
            b[0] = tfm_panels_take(bias, column, columns, s->type[2]);
            if (both)
                b[1] = tfm_panels_take(bias, column + TFM_PANEL, columns - TFM_PANEL, s->type[2]);
        }
        for (uint t = first; t < end; t++) {
            const uint row = t * TFM_PANELS_ROWS;
            tfm_panels_tile(x + (ulong)row * in + k, in, min(n - row, (uint)TFM_PANELS_ROWS) - 1,
                            w0, w1, depth, k > 0, b, y + (ulong)row * out + column, out, columns);
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
