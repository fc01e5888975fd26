/* SPDX-License-Identifier: MIT
 * rms_norm: y = x / sqrt(mean(x^2) + eps) * gamma   (Zhang and Sennrich, arXiv:1910.07467)
 *   x, y [N, vectors, width] F32, F16 or BF16; gamma [width] F32; summed in float, rounded once
 *
 * Work map: a part takes a run of rows; a row is summed in 16 lanes, then the lanes by halves, so
 * that the order depends on the width alone. y may be x. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif
#define TFM_RMS_NORM_CL

static void tfm_rms_norm_row(__global const uchar *x, __global const uchar *gamma,
                             __global uchar *y, ulong first, __global const struct tfm_step *s)
{
    const uint width = s->width, whole = width & ~15u;
    float16 squares = 0.0f;

    for (uint i = 0; i < whole; i += 16) {
        const float16 v = tfm_load16(x, first + i, s->type[0]);
        squares = fma(v, v, squares);
    }
    if (whole < width) {
        const float16 v = tfm_load_tail(x, first + whole, width - whole, s->type[0]);
        squares = fma(v, v, squares);
    }
    const float factor = 1.0f / sqrt(tfm_sum16(squares) / (float)width + s->eps);

    for (uint i = 0; i < whole; i += 16)
        tfm_store16(tfm_load16(x, first + i, s->type[0]) * factor *
                        tfm_load16(gamma, i, s->type[1]),
                    y, first + i, s->type[2]);
    for (uint i = whole; i < width; i++)
        tfm_store(tfm_load(x, first + i, s->type[0]) * factor * tfm_load(gamma, i, s->type[1]), y,
                  first + i, s->type[2]);
}

static void tfm_rms_norm(__global const uchar *x, __global const uchar *gamma, __global uchar *y,
                         __global const struct tfm_step *s, __global const int *rows, uint part,
                         uint parts)
{
    const uint n = tfm_vectors(s, rows), end = (uint)tfm_share(n, part + 1, parts);

    for (uint row = (uint)tfm_share(n, part, parts); row < end; row++)
        tfm_rms_norm_row(x, gamma, y, (ulong)row * s->width, s);
}

#ifndef TFM_PERSISTENT /* this function alone is a kernel, too */
__kernel void tfm_run_rms_norm(__global const uchar *x, __global const uchar *gamma,
                               __global uchar *y, __global const struct tfm_step *steps, uint index,
                               __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_rms_norm(x + s->at[0], gamma + s->at[1], y + s->at[2], s, rows, get_group_id(0),
                 get_num_groups(0));
}
#endif
