/* SPDX-License-Identifier: MIT
 * linear, few rows: y = x W^T (+ bias), a matrix-vector product for TFM_LINEAR_TILE rows at a time
 *   x [N, in] F32, weight [out, in] packed in panels of 16 output rows (see step.h), bias [out] F32
 *   or absent, y [N, out] F32; sums: workspace, `scratch` floats for each part
 *   block types: y[n][o] = sum over blocks of d (sum of q x) + m (sum of x); Q4_0 has m = -8 d
 *
 *        lane      0     1    ...   15
 *   panel p = rows 16p  16p+1 ... 16p+15    one float16 accumulator a row n of x; a loaded and
 *   k = 0..in-1   the weights of a column   converted vector of weights serves all rows of a tile
 *
 * Work map: a part takes a run of panels; in a panel the rows n go in tiles, so that the panel
 * comes from memory once. Each y is summed over k in one order, whatever the tile and the part. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif

#define TFM_LINEAR_CL

#ifndef TFM_LINEAR_TILE
#define TFM_LINEAR_TILE (TFM_NARROW ? 1 : 4)
#endif

/* dtype id of the weight: a program a type, so that only the types of a model are compiled */
#ifndef TFM_LINEAR_TYPE
#define TFM_LINEAR_TYPE TFM_STEP_Q4_1
#endif

/* acc[t] = x[t] . panel for the `tile` rows x[t] = x + t * in (the last ones repeat row `last`);
 * sums [.][in/32] holds the sum of each block of x. `tile` and `affine` (the type has an m) are
 * constants to the caller. */
TFM_INLINE void tfm_linear_q4(__global const uchar *panel, const int affine,
                              __global const float *x, __global const float *sums, uint in,
                              uint last, const uint tile, float16 *acc)
{
    const uint blocks = in / TFM_BLOCK;
    const uint bytes = affine ? TFM_PANEL_Q4_1 : TFM_PANEL_Q4_0;

    for (uint b = 0; b < blocks; b++, panel += bytes) {
        const float16 d = vload_half16(0, (__global const half *)panel);
        const float16 m = affine ? vload_half16(1, (__global const half *)panel) : d * -8.0f;
        __global const uint *quants = (__global const uint *)(panel + (affine ? 64 : 32));
        float16 low[TFM_LINEAR_TILE], high[TFM_LINEAR_TILE];

#pragma unroll
        for (uint t = 0; t < tile; t++)
            low[t] = high[t] = 0.0f;
#pragma unroll 1 /* four times the code would compile longer and run no faster */
        for (uint j = 0; j < 4; j++) {
            const uint16 q = vload16(j, quants);
#pragma unroll
            for (uint i = 0; i < 4; i++) {
                const float16 wl = convert_float16(as_int16((q >> (8 * i)) & 15u));
                const float16 wh = convert_float16(as_int16((q >> (8 * i + 4)) & 15u));
#pragma unroll
                for (uint t = 0; t < tile; t++) {
                    __global const float *v = x + (ulong)min(t, last) * in + b * 32 + 4 * j + i;
                    low[t] = fma(wl, (float16)(v[0]), low[t]);
                    high[t] = fma(wh, (float16)(v[16]), high[t]);
                }
            }
        }
#pragma unroll
        for (uint t = 0; t < tile; t++) {
            acc[t] = fma(low[t] + high[t], d, acc[t]);
            acc[t] = fma(m, (float16)(sums[min(t, last) * blocks + b]), acc[t]);
        }
    }
}

TFM_INLINE void tfm_linear_q8(__global const uchar *panel, __global const float *x, uint in,
                              uint last, const uint tile, float16 *acc)
{
    const uint blocks = in / TFM_BLOCK;

    for (uint b = 0; b < blocks; b++, panel += TFM_PANEL_Q8_0) {
        const float16 d = vload_half16(0, (__global const half *)panel);
        __global const int *quants = (__global const int *)(panel + 32);
        float16 even[TFM_LINEAR_TILE], odd[TFM_LINEAR_TILE];

#pragma unroll
        for (uint t = 0; t < tile; t++)
            even[t] = odd[t] = 0.0f;
#pragma unroll 1
        for (uint j = 0; j < 8; j++) {
            const int16 q = vload16(j, quants);
#pragma unroll
            for (uint i = 0; i < 4; i++) {
                const float16 w = convert_float16((q << (24 - 8 * i)) >> 24);
#pragma unroll
                for (uint t = 0; t < tile; t++) {
                    __global const float *v = x + (ulong)min(t, last) * in + b * 32 + 4 * j + i;
                    if (i % 2)
                        odd[t] = fma(w, (float16)(v[0]), odd[t]);
                    else
                        even[t] = fma(w, (float16)(v[0]), even[t]);
                }
            }
        }
#pragma unroll
        for (uint t = 0; t < tile; t++)
            acc[t] = fma(even[t] + odd[t], d, acc[t]);
    }
}

TFM_INLINE void tfm_linear_plain(__global const uchar *panel, const uint type,
                                 __global const float *x, uint in, uint last, const uint tile,
                                 float16 *acc)
{
    float16 odd[TFM_LINEAR_TILE];
    uint k = 0;

#pragma unroll
    for (uint t = 0; t < tile; t++)
        odd[t] = 0.0f;
    for (; k + 2 <= in; k += 2) {
        const float16 a = tfm_load16(panel, (ulong)k * 16, type);
        const float16 b = tfm_load16(panel, (ulong)k * 16 + 16, type);
#pragma unroll
        for (uint t = 0; t < tile; t++) {
            __global const float *v = x + (ulong)min(t, last) * in + k;
            acc[t] = fma(a, (float16)(v[0]), acc[t]);
            odd[t] = fma(b, (float16)(v[1]), odd[t]);
        }
    }
    if (k < in) {
        const float16 a = tfm_load16(panel, (ulong)k * 16, type);
#pragma unroll
        for (uint t = 0; t < tile; t++)
            acc[t] = fma(a, (float16)(x[(ulong)min(t, last) * in + k]), acc[t]);
    }
#pragma unroll
    for (uint t = 0; t < tile; t++)
        acc[t] += odd[t];
}

/* Outside of the persistent kernel it is plain to see that only one type is needed: to a compiler that
 * does not look for constants, too. */
#ifdef TFM_PERSISTENT
#define TFM_LINEAR_IS(type, id) ((type) == (id))
#else
#define TFM_LINEAR_IS(type, id) (TFM_LINEAR_TYPE == (id))
#endif

/* acc[t] = x[t] . panel, of any type. */
TFM_INLINE void tfm_linear_panel(const uint type, __global const uchar *panel,
                                 __global const float *x, __global const float *sums, uint in,
                                 uint last, const uint tile, float16 *acc)
{
#pragma unroll
    for (uint t = 0; t < tile; t++)
        acc[t] = 0.0f;
    if (TFM_LINEAR_IS(type, TFM_STEP_Q4_0) || TFM_LINEAR_IS(type, TFM_STEP_Q4_1))
        tfm_linear_q4(panel, type == TFM_STEP_Q4_1, x, sums, in, last, tile, acc);
    else if (TFM_LINEAR_IS(type, TFM_STEP_Q8_0))
        tfm_linear_q8(panel, x, in, last, tile, acc);
    else
        tfm_linear_plain(panel, type, x, in, last, tile, acc);
}

/* Rows [row, row + tile) of one panel; those past `n` are computed and dropped. */
TFM_INLINE void tfm_linear_rows(const uint type, __global const uchar *panel,
                                __global const float *x, __global const float *sums,
                                __global const uchar *bias, __global float *y, uint p, uint row,
                                uint n, const uint tile, __global const struct tfm_step *s)
{
    const uint in = s->width, last = min(n - row, tile) - 1;
    const uint first = p * TFM_PANEL, lanes = min(s->out - first, TFM_PANEL);
    float16 acc[TFM_LINEAR_TILE];

    tfm_linear_panel(type, panel, x + (ulong)row * in, sums + row * (in / TFM_BLOCK), in, last,
                     tile, acc);

    float16 b = 0.0f;
    if (s->type[2] != TFM_STEP_NONE)
        b = lanes == TFM_PANEL ? tfm_load16(bias, first, s->type[2])
                               : tfm_load_tail(bias, first, lanes, s->type[2]);
#pragma unroll
    for (uint t = 0; t < tile; t++) {
        if (t > last)
            continue;
        const ulong at = (ulong)(row + t) * s->out + first;
        if (lanes == TFM_PANEL)
            vstore16(acc[t] + b, 0, y + at);
        else
            tfm_store_tail(acc[t] + b, (__global uchar *)y, at, lanes, TFM_STEP_F32);
    }
}

/* The sums of x over blocks of 32, for the types that have a minimum. */
static void tfm_linear_sums(__global const float *x, __global float *sums, ulong blocks)
{
    for (ulong b = 0; b < blocks; b++)
        sums[b] = tfm_sum16(vload16(2 * b, x) + vload16(2 * b + 1, x));
}

TFM_INLINE void tfm_linear(const uint type, __global const uchar *x, __global const uchar *weight,
                           __global const uchar *bias, __global uchar *y, __global float *sums,
                           __global const struct tfm_step *s, __global const int *rows, uint part,
                           uint parts)
{
    const uint n = tfm_vectors(s, rows), panels = (s->out + TFM_PANEL - 1) / TFM_PANEL;
    const uint end = (uint)tfm_share(panels, part + 1, parts);
    uint p = (uint)tfm_share(panels, part, parts);
    __global const float *in = (__global const float *)x;
    __global float *out = (__global float *)y;
    const ulong bytes = tfm_panel_bytes(type, s->width);

    if (n == 0 || p == end)
        return;
    sums += (ulong)part * s->scratch;
    if (type == TFM_STEP_Q4_0 || type == TFM_STEP_Q4_1)
        tfm_linear_sums(in, sums, (ulong)n * (s->width / TFM_BLOCK));
    for (; p < end; p++) {
        __global const uchar *panel = weight + p * bytes;
        uint row = 0;
#if TFM_NARROW
        for (; row < n; row++)
            tfm_linear_rows(type, panel, in, sums, bias, out, p, row, n, 1, s);
#else
        for (; n - row > 2; row += min(n - row, 4u))
            tfm_linear_rows(type, panel, in, sums, bias, out, p, row, n, 4, s);
        if (n - row == 2)
            tfm_linear_rows(type, panel, in, sums, bias, out, p, row, n, 2, s);
        else if (n - row == 1)
            tfm_linear_rows(type, panel, in, sums, bias, out, p, row, n, 1, s);
#endif
    }
}

#ifndef TFM_PERSISTENT
__kernel void tfm_run_linear(__global const uchar *x, __global const uchar *weight,
                             __global const uchar *bias, __global uchar *y, __global uchar *sums,
                             __global const struct tfm_step *steps, uint index,
                             __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_linear(TFM_LINEAR_TYPE, x + s->at[0], weight + s->at[1], bias + s->at[2], y + s->at[3],
               (__global float *)(sums + s->at[4]), s, rows, get_group_id(0), get_num_groups(0));
}
#endif
