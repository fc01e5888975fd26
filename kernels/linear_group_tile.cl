/* SPDX-License-Identifier: MIT
 * linear in the group shape, many rows: a tiled matrix product; linear.cl has formula, shapes, dtypes.
 *
 *             64 output rows, 4 panels
 *   64 rows   +--------------------+    32 k at a time: x and the unpacked weights come to local
 *   of x      | 4 x 4 sums for     |    memory, [k][64] each, 16 KiB in all
 *             | each work-item     |
 *             +--------------------+
 *
 * Work map: the units are tiles, a group takes a run of them. 256 squares of 4 x 4 are a tile; a group of
 * fewer work-items goes over its tile several times. Each y is summed over k from left to right. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif

#ifndef TFM_LINEAR_TYPE /* dtype id of the weight */
#define TFM_LINEAR_TYPE TFM_STEP_Q4_1
#endif
#define TFM_TILE        64u
#define TFM_TILE_K      32u
#define TFM_TILE_PANELS (TFM_TILE / TFM_PANEL)
#define TFM_TILE_SIDE   16u /* squares in a row */

/* 32 k of 64 rows of x, turned; what x does not reach is 0. */
static void tfm_tile_take_x(__global const float *x, uint in, uint first, uint n, uint k,
                            __local float *to)
{
    for (uint i = (uint)get_local_id(0); i < TFM_TILE * TFM_TILE_K; i += (uint)get_local_size(0)) {
        const uint row = i / TFM_TILE_K, column = i % TFM_TILE_K;
        to[column * TFM_TILE + row] =
            first + row < n && k + column < in ? x[(ulong)(first + row) * in + k + column] : 0.0f;
    }
}

TFM_INLINE void tfm_tile_take_q4(__global const uchar *block, const int affine, uint i,
                                 __local float *to)
{
    const uint r = i % TFM_PANEL, j = i / TFM_PANEL;
    const float d = vload_half(r, (__global const half *)block);
    const float m = affine ? vload_half(TFM_PANEL + r, (__global const half *)block) : d * -8.0f;
    const uint q = ((__global const uint *)(block + (affine ? 64 : 32)))[i];

    for (uint b = 0; b < 4; b++) {
        to[(4 * j + b) * TFM_TILE + r] = fma((float)((q >> (8 * b)) & 15u), d, m);
        to[(4 * j + b + 16) * TFM_TILE + r] = fma((float)((q >> (8 * b + 4)) & 15u), d, m);
    }
}

TFM_INLINE void tfm_tile_take_q8(__global const uchar *block, uint i, __local float *to)
{
    const uint r = i % TFM_PANEL, j = i / TFM_PANEL;
    const float d = vload_half(r, (__global const half *)block);
    const int q = ((__global const int *)(block + 32))[i];

    for (uint b = 0; b < 4; b++)
        to[(4 * j + b) * TFM_TILE + r] = (float)((q << (24 - 8 * b)) >> 24) * d;
}

/* 32 k of the panels from `panel` on; those past the last are 0. */
TFM_INLINE void tfm_tile_take_weight(const uint type, __global const uchar *weight, uint in,
                                     uint panel, uint panels, uint k, __local float *to)
{
    const uint words = type >= TFM_STEP_Q8_0   ? 128u /* of a panel: what a work-item unpacks */
                       : type >= TFM_STEP_Q4_0 ? 64u
                                               : TFM_PANEL * TFM_TILE_K;

    for (uint i = (uint)get_local_id(0); i < TFM_TILE_PANELS * words;
         i += (uint)get_local_size(0)) {
        const uint p = i / words, w = i % words;
        const int here = panel + p < panels;
        __local float *column = to + p * TFM_PANEL;
        if (type >= TFM_STEP_Q4_0) {
            /* a panel past the last is read as the last, and not stored */
            __global const uchar *block = weight +
                                          min(panel + p, panels - 1) * tfm_panel_bytes(type, in) +
                                          tfm_panel_bytes(type, k);
            if (type == TFM_STEP_Q8_0)
                tfm_tile_take_q8(block, w, column);
            else
                tfm_tile_take_q4(block, type == TFM_STEP_Q4_1, w, column);
        } else {
            const uint r = w % TFM_PANEL, at = k + w / TFM_PANEL;
            column[w / TFM_PANEL * TFM_TILE + r] =
                here && at < in
                    ? tfm_load(weight, ((ulong)(panel + p) * in + at) * TFM_PANEL + r, type)
                    : 0.0f;
        }
    }
}

/* Sums of the square of this work-item: 4 rows, each 4 columns. */
static void tfm_tile_multiply(__local const float *x, __local const float *w, float4 *sums)
{
    for (uint k = 0; k < TFM_TILE_K; k++) {
        const float4 a = vload4(0, x + k * TFM_TILE), b = vload4(0, w + k * TFM_TILE);
        sums[0] = fma((float4)(a.x), b, sums[0]);
        sums[1] = fma((float4)(a.y), b, sums[1]);
        sums[2] = fma((float4)(a.z), b, sums[2]);
        sums[3] = fma((float4)(a.w), b, sums[3]);
    }
}

static void tfm_tile_store(const float4 *sums, __global const uchar *bias, __global float *y,
                           uint row, uint n, uint column, __global const struct tfm_step *s)
{
    for (uint i = 0; i < 4 && row + i < n; i++) {
        float four[4];
        vstore4(sums[i], 0, four);
        for (uint j = 0; j < 4 && column + j < s->out; j++)
            y[(ulong)(row + i) * s->out + column + j] =
                four[j] +
                (s->type[2] == TFM_STEP_NONE ? 0.0f : tfm_load(bias, column + j, s->type[2]));
    }
}

TFM_INLINE void tfm_linear_group_tile(const uint type, __global const float *x,
                                      __global const uchar *weight, __global const uchar *bias,
                                      __global float *y, __global const struct tfm_step *s,
                                      __global const int *rows, __local float *xs,
                                      __local float *ws)
{
    const uint group = (uint)get_group_id(0), groups = (uint)get_num_groups(0);
    const uint size = (uint)get_local_size(0), n = tfm_vectors(s, rows), in = s->width;
    const uint panels = (s->out + TFM_PANEL - 1) / TFM_PANEL;
    const uint across = (n + TFM_TILE - 1) / TFM_TILE;
    const uint along = (panels + TFM_TILE_PANELS - 1) / TFM_TILE_PANELS;
    const ulong end = tfm_share((ulong)across * along, group + 1, groups);

    for (ulong u = tfm_share((ulong)across * along, group, groups); u < end; u++) {
        const uint first = (uint)(u % across) * TFM_TILE;
        const uint panel = (uint)(u / across) * TFM_TILE_PANELS;
        for (uint square = (uint)get_local_id(0); square < TFM_TILE_SIDE * TFM_TILE_SIDE;
             square += size) {
            const uint row = square / TFM_TILE_SIDE * 4, column = square % TFM_TILE_SIDE * 4;
            float4 sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            for (uint k = 0; k < in; k += TFM_TILE_K) {
                tfm_tile_take_x(x, in, first, n, k, xs);
                tfm_tile_take_weight(type, weight, in, panel, panels, k, ws);
                barrier(CLK_LOCAL_MEM_FENCE);
                tfm_tile_multiply(xs + row, ws + column, sums);
                barrier(CLK_LOCAL_MEM_FENCE); /* before the next 32 k come */
            }
            tfm_tile_store(sums, bias, y, first + row, n, panel * TFM_PANEL + column, s);
        }
    }
}

__kernel void tfm_run_linear_group_tile(__global const uchar *x, __global const uchar *weight,
                                        __global const uchar *bias, __global uchar *y,
                                        __global uchar *unused,
                                        __global const struct tfm_step *steps, uint index,
                                        __global const int *rows, __local float *tiles)
{
    __global const struct tfm_step *s = steps + index;
    (void)unused; /* the workspace of the wide shape */

    tfm_linear_group_tile(TFM_LINEAR_TYPE, (__global const float *)(x + s->at[0]),
                          weight + s->at[1], bias + s->at[2], (__global float *)(y + s->at[3]), s,
                          rows, tiles, tiles + TFM_TILE * TFM_TILE_K);
}
