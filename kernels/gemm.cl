/* SPDX-License-Identifier: MIT
 * gemm: what surrounds the SGEMM of a linear with many rows, Y = X W^T (+ bias), one block of
 * output rows after the other. All three matrices of the SGEMM are padded to whole 16s here, with
 * zeros, so that it needs no copies of its own:
 *   turn    x [N, in] -> [in16][N16] F32
 *   unpack  weight [out, in] packed (see step.h), panels [panel, panel + panels)
 *           -> [in16][16 panels] F32
 *   store   product [N16][16 panels] -> y [N, out], columns from 16 panel on, plus bias
 *
 * Work map: the units of turn are 16 x 16 elements of x, those of unpack 32 k of a panel, those of store 16
 * columns of a row; shared out as tfm_first in common.cl shows. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif
#ifndef TFM_UNPACK_CL
#include "unpack.cl"
#endif

/* Floats of k in the padded matrices. */
static uint tfm_gemm_depth(__global const struct tfm_step *s)
{
    return (s->width + 15) & ~15u;
}

/* x [n, in] -> y [16][ld], n <= 16; what x does not reach becomes 0. */
static void tfm_gemm_turn_edge(__global const float *x, uint in, uint n, uint k, __global float *y,
                               ulong ld)
{
    for (uint j = 0; j < 16; j++) {
        float lanes[16];
        for (uint i = 0; i < 16; i++)
            lanes[i] = i < n && k + j < in ? x[(ulong)i * in + k + j] : 0.0f;
        tfm_put16(vload16(0, lanes), 0, y + j * ld);
    }
}

static void tfm_gemm_turn(__global const float *x, __global float *y,
                          __global const struct tfm_step *s, __global const int *rows, uint part,
                          uint parts)
{
    const uint n = tfm_vectors(s, rows), columns = (n + 15) / 16, in = s->width;
    const uint pieces = tfm_gemm_depth(s) / 16;
    const ulong ld = (ulong)columns * 16, units = (ulong)columns * pieces;
    const ulong end = tfm_end(units, part, parts);

    for (ulong unit = tfm_first(units, part, parts); unit < end; unit += tfm_stride(parts)) {
        const uint c = (uint)(unit / pieces), k = (uint)(unit % pieces) * 16;
        __global const float *from = x + (ulong)c * 16 * in;
        const uint left = min(n - c * 16, 16u);
        float16 v[16];
        if (left < 16 || k + 16 > in) {
            tfm_gemm_turn_edge(from, in, left, k, y + k * ld + c * 16, ld);
            continue;
        }
#pragma unroll
        for (uint i = 0; i < 16; i++)
            v[i] = vload16(0, from + (ulong)i * in + k);
        tfm_transpose(v);
#pragma unroll
        for (uint i = 0; i < 16; i++)
            tfm_put16(v[i], 0, y + (k + i) * ld + c * 16);
    }
}

static void tfm_gemm_unpack(__global const uchar *weight, __global float *y,
                            __global const struct tfm_step *s, __global const int *rows, uint part,
                            uint parts)
{
    const uint type = s->type[0], in = s->width, pieces = (in + TFM_BLOCK - 1) / TFM_BLOCK;
    const ulong ld = (ulong)s->panels * TFM_PANEL, units = (ulong)s->panels * pieces;
    const ulong end = tfm_end(units, part, parts);

    if (tfm_rows(s, rows) == 0)
        return;
    for (ulong unit = tfm_first(units, part, parts); unit < end; unit += tfm_stride(parts)) {
        const uint p = (uint)(unit / pieces), first = (uint)(unit % pieces) * TFM_BLOCK;
        const uint depth = min(in - first, (uint)TFM_BLOCK);
        __global float *column = y + p * TFM_PANEL;
        tfm_unpack(type, tfm_panel(type, weight, s->panel + p, in), first, depth,
                   column + first * ld, ld);
        for (uint k = in; first + depth == in && k < tfm_gemm_depth(s); k++)
            tfm_put16((float16)(0.0f), 0, column + k * ld);
    }
}

static void tfm_gemm_store(__global const float *product, __global const uchar *bias,
                           __global float *y, __global const struct tfm_step *s,
                           __global const int *rows, uint part, uint parts)
{
    const uint n = tfm_vectors(s, rows), first = s->panel * TFM_PANEL, ld = s->panels * TFM_PANEL;
    const uint columns = min(ld, s->out - first), pieces = (columns + 15) / 16, type = s->type[1];
    const ulong units = (ulong)n * pieces, end = tfm_end(units, part, parts);

    for (ulong unit = tfm_first(units, part, parts); unit < end; unit += tfm_stride(parts)) {
        const ulong row = unit / pieces;
        const uint at = (uint)(unit % pieces) * 16;
        __global const float *from = product + row * ld;
        __global float *to = y + row * s->out + first;
        if (at + 16 <= columns) {
            const float16 b = type == TFM_STEP_NONE ? 0.0f : tfm_load16(bias, first + at, type);
            tfm_put16(vload16(0, from + at) + b, 0, to + at);
            continue;
        }
        for (uint i = at; i < columns; i++)
            to[i] = from[i] + (type == TFM_STEP_NONE ? 0.0f : tfm_load(bias, first + i, type));
    }
}

__kernel void tfm_run_gemm_turn(__global const uchar *x, __global uchar *y,
                                __global const struct tfm_step *steps, uint index,
                                __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_gemm_turn((__global const float *)(x + s->at[0]), (__global float *)(y + s->at[1]), s, rows,
                  get_global_id(0), get_global_size(0));
}

__kernel void tfm_run_gemm_unpack(__global const uchar *weight, __global uchar *y,
                                  __global const struct tfm_step *steps, uint index,
                                  __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_gemm_unpack(weight + s->at[0], (__global float *)(y + s->at[1]), s, rows, get_global_id(0),
                    get_global_size(0));
}

__kernel void tfm_run_gemm_store(__global const uchar *product, __global const uchar *bias,
                                 __global uchar *y, __global const struct tfm_step *steps,
                                 uint index, __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_gemm_store((__global const float *)(product + s->at[0]), bias + s->at[1],
                   (__global float *)(y + s->at[2]), s, rows, get_global_id(0), get_global_size(0));
}
