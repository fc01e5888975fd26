/* SPDX-License-Identifier: MIT
 * linear in the group shape, few rows; linear.cl has formula, shapes and dtypes.
 *
 * Work map: a group takes a run of panels. In a panel 16 work-items are the 16 output rows, so that they
 * read neighbouring bytes; the rest of the group are slices of k, added up at the end:
 *
 *   work-item   0 .. 15 | 16 .. 31 | 32 .. 47 ...
 *   block of k     0    |     1    |    2           then blocks slices further on
 *
 * A group of fewer than 16 goes over the panel several times. TFM_LINEAR_ROWS rows of x are taken at a
 * time. The order of a sum depends on `in` and on the size of the group. */
#ifndef TFM_GROUP_CL
#include "group.cl"
#endif

#ifndef TFM_LINEAR_TYPE /* dtype id of the weight */
#define TFM_LINEAR_TYPE TFM_STEP_Q4_1
#endif
#define TFM_LINEAR_ROWS 4

/* acc[t] += x[t] . row r of one block of 32 k, of which m counts the sum of x. The last rows of a tile
 * repeat row `last`; `tile` and `affine` are constants to the caller. */
TFM_INLINE void tfm_linear_group_q4(__global const uchar *block, const int affine, uint r,
                                    __global const float *x, uint in, uint last, const uint tile,
                                    float *acc)
{
    const float d = vload_half(r, (__global const half *)block);
    const float m = affine ? vload_half(TFM_PANEL + r, (__global const half *)block) : d * -8.0f;
    __global const uint *quants = (__global const uint *)(block + (affine ? 64 : 32));
    float sum[TFM_LINEAR_ROWS], all[TFM_LINEAR_ROWS];

    for (uint t = 0; t < tile; t++)
        sum[t] = all[t] = 0.0f;
    for (uint j = 0; j < 4; j++) {
        const uint q = quants[j * TFM_PANEL + r];
        for (uint i = 0; i < 4; i++) {
            const float low = (float)((q >> (8 * i)) & 15u);
            const float high = (float)((q >> (8 * i + 4)) & 15u);
            for (uint t = 0; t < tile; t++) {
                __global const float *v = x + (ulong)min(t, last) * in + 4 * j + i;
                sum[t] = fma(high, v[16], fma(low, v[0], sum[t]));
                all[t] += v[0] + v[16];
            }
        }
    }
    for (uint t = 0; t < tile; t++)
        acc[t] = fma(sum[t], d, fma(all[t], m, acc[t]));
}

TFM_INLINE void tfm_linear_group_q8(__global const uchar *block, uint r, __global const float *x,
                                    uint in, uint last, const uint tile, float *acc)
{
    const float d = vload_half(r, (__global const half *)block);
    __global const int *quants = (__global const int *)(block + 32);
    float sum[TFM_LINEAR_ROWS];

    for (uint t = 0; t < tile; t++)
        sum[t] = 0.0f;
    for (uint j = 0; j < 8; j++) {
        const int q = quants[j * TFM_PANEL + r];
        for (uint i = 0; i < 4; i++) {
            const float w = (float)((q << (24 - 8 * i)) >> 24);
            for (uint t = 0; t < tile; t++)
                sum[t] = fma(w, x[(ulong)min(t, last) * in + 4 * j + i], sum[t]);
        }
    }
    for (uint t = 0; t < tile; t++)
        acc[t] = fma(sum[t], d, acc[t]);
}

/* The slice of a work-item: blocks, or single k of a plain type, slice, slice + slices ... */
TFM_INLINE void tfm_linear_group_slice(const uint type, __global const uchar *panel, uint r,
                                       uint slice, uint slices, __global const float *x, uint in,
                                       uint last, const uint tile, float *acc)
{
    const uint n = type >= TFM_STEP_Q4_0 ? in / TFM_BLOCK : in;

    for (uint b = slice; b < n; b += slices) {
        if (type == TFM_STEP_Q4_0)
            tfm_linear_group_q4(panel + (ulong)b * TFM_PANEL_Q4_0, 0, r, x + b * TFM_BLOCK, in,
                                last, tile, acc);
        else if (type == TFM_STEP_Q4_1)
            tfm_linear_group_q4(panel + (ulong)b * TFM_PANEL_Q4_1, 1, r, x + b * TFM_BLOCK, in,
                                last, tile, acc);
        else if (type == TFM_STEP_Q8_0)
            tfm_linear_group_q8(panel + (ulong)b * TFM_PANEL_Q8_0, r, x + b * TFM_BLOCK, in, last,
                                tile, acc);
        else {
            const float w = tfm_load(panel, (ulong)b * TFM_PANEL + r, type);
            for (uint t = 0; t < tile; t++)
                acc[t] = fma(w, x[(ulong)min(t, last) * in + b], acc[t]);
        }
    }
}

/* Rows [row, row + tile) of y for one panel; cells [tile][size]. */
TFM_INLINE void tfm_linear_group_rows(const uint type, __global const uchar *panel,
                                      __global const float *x, __global const uchar *bias,
                                      __global float *y, uint p, uint row, uint n, const uint tile,
                                      __global const struct tfm_step *s, __local float *cells)
{
    const uint me = (uint)get_local_id(0), size = (uint)get_local_size(0);
    const uint lanes = min(size, TFM_PANEL), last = min(n - row, tile) - 1, in = s->width;

    for (uint round = 0; round < TFM_PANEL / lanes; round++) {
        const uint r = round * lanes + me % lanes, column = p * TFM_PANEL + r;
        float acc[TFM_LINEAR_ROWS];
        for (uint t = 0; t < tile; t++)
            acc[t] = 0.0f;
        tfm_linear_group_slice(type, panel, r, me / lanes, size / lanes, x + (ulong)row * in, in,
                               last, tile, acc);
        for (uint t = 0; t < tile; t++)
            cells[t * size + me] = acc[t];
        for (uint n_left = size / 2; n_left > 0; n_left /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint t = 0; t < tile && n_left >= lanes && me < n_left; t++)
                cells[t * size + me] += cells[t * size + me + n_left];
        }
        /* a work-item reads what it has written itself */
        if (me < lanes && column < s->out) {
            const float b = s->type[2] == TFM_STEP_NONE ? 0.0f : tfm_load(bias, column, s->type[2]);
            for (uint t = 0; t <= last; t++)
                y[(ulong)(row + t) * s->out + column] = cells[t * size + me] + b;
        }
        barrier(CLK_LOCAL_MEM_FENCE); /* before the cells are used again */
    }
}

TFM_INLINE void tfm_linear_group(const uint type, __global const float *x,
                                 __global const uchar *weight, __global const uchar *bias,
                                 __global float *y, __global const struct tfm_step *s,
                                 __global const int *rows, __local float *cells)
{
    const uint group = (uint)get_group_id(0), groups = (uint)get_num_groups(0);
    const uint n = tfm_vectors(s, rows), panels = (s->out + TFM_PANEL - 1) / TFM_PANEL;
    const uint end = n == 0 ? 0 : (uint)tfm_share(panels, group + 1, groups);
    const ulong stride = tfm_panel_bytes(type, s->width);

    for (uint p = (uint)tfm_share(panels, group, groups); p < end; p++) {
        uint row = 0;
        for (; n - row > 1; row += min(n - row, (uint)TFM_LINEAR_ROWS))
            tfm_linear_group_rows(type, weight + p * stride, x, bias, y, p, row, n, TFM_LINEAR_ROWS,
                                  s, cells);
        if (row < n)
            tfm_linear_group_rows(type, weight + p * stride, x, bias, y, p, row, n, 1, s, cells);
    }
}

__kernel void tfm_run_linear_group(__global const uchar *x, __global const uchar *weight,
                                   __global const uchar *bias, __global uchar *y,
                                   __global uchar *unused, __global const struct tfm_step *steps,
                                   uint index, __global const int *rows, __local float *cells)
{
    __global const struct tfm_step *s = steps + index;
    (void)unused; /* the workspace of the wide shape */

    tfm_linear_group(TFM_LINEAR_TYPE, (__global const float *)(x + s->at[0]), weight + s->at[1],
                     bias + s->at[2], (__global float *)(y + s->at[3]), s, rows, cells);
}
