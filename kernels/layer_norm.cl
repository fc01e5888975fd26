/* SPDX-License-Identifier: MIT
 * layer_norm: y = (x - mean) / sqrt(variance + eps) * gamma + beta   (Ba et al., arXiv:1607.06450)
 *   x, y [N, vectors, width] F32, F16 or BF16; gamma, beta [width] F32, beta may be absent; all in float,
 *   rounded once
 *
 * Two passes over a row: the mean m, then the sums of d = x - m and of d^2. The first gives what
 * rounding left of the mean, r = mean(d): mean = m + r to twice the digits of a float, variance =
 * mean(d^2) - r^2, where nothing cancels because r is tiny.
 *
 * Work map: a part takes a run of rows; a row is summed in 16 lanes, then the lanes by halves, so
 * that the order depends on the width alone. y may be x. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif

/* Sum of the row. */
static float tfm_layer_norm_sum(__global const uchar *x, ulong first, uint width, uint type)
{
    const uint whole = width & ~15u;
    float16 sum = 0.0f;

    for (uint i = 0; i < whole; i += 16)
        sum += tfm_load16(x, first + i, type);
    if (whole < width)
        sum += tfm_load_tail(x, first + whole, width - whole, type);
    return tfm_sum16(sum);
}

/* Sums of x - mean and of its square. */
static float2 tfm_layer_norm_spread(__global const uchar *x, ulong first, uint width, uint type,
                                    float mean)
{
    const uint whole = width & ~15u;
    float16 sum = 0.0f, squares = 0.0f;

    for (uint i = 0; i < whole; i += 16) {
        const float16 d = tfm_load16(x, first + i, type) - mean;
        sum += d;
        squares = fma(d, d, squares);
    }
    if (whole < width) {
        const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        const float16 v = tfm_load_tail(x, first + whole, width - whole, type) - mean;
        const float16 d = select((float16)(0.0f), v, lane < (int16)((int)(width - whole)));
        sum += d;
        squares = fma(d, d, squares);
    }
    return (float2)(tfm_sum16(sum), tfm_sum16(squares));
}

static void tfm_layer_norm_row(__global const uchar *x, __global const uchar *gamma,
                               __global const uchar *beta, __global uchar *y, ulong first,
                               __global const struct tfm_step *s)
{
    const uint width = s->width, whole = width & ~15u, gain = s->type[1], shift = s->type[2];
    const float mean = tfm_layer_norm_sum(x, first, width, s->type[0]) / (float)width;
    const float2 spread = tfm_layer_norm_spread(x, first, width, s->type[0], mean) / (float)width;
    const float rest = spread.x, variance = fmax(spread.y - rest * rest, 0.0f);
    const float factor = 1.0f / sqrt(variance + s->eps);

    for (uint i = 0; i < whole; i += 16) {
        const float16 b = shift == TFM_STEP_NONE ? (float16)(0.0f) : tfm_load16(beta, i, shift);
        const float16 n = (tfm_load16(x, first + i, s->type[0]) - mean - rest) * factor;
        tfm_store16(fma(n, tfm_load16(gamma, i, gain), b), y, first + i, s->type[3]);
    }
    for (uint i = whole; i < width; i++) {
        const float b = shift == TFM_STEP_NONE ? 0.0f : tfm_load(beta, i, shift);
        const float n = (tfm_load(x, first + i, s->type[0]) - mean - rest) * factor;
        tfm_store(fma(n, tfm_load(gamma, i, gain), b), y, first + i, s->type[3]);
    }
}

static void tfm_layer_norm(__global const uchar *x, __global const uchar *gamma,
                           __global const uchar *beta, __global uchar *y,
                           __global const struct tfm_step *s, __global const int *rows, uint part,
                           uint parts)
{
    const uint n = tfm_vectors(s, rows), end = (uint)tfm_share(n, part + 1, parts);

    for (uint row = (uint)tfm_share(n, part, parts); row < end; row++)
        tfm_layer_norm_row(x, gamma, beta, y, (ulong)row * s->width, s);
}

__kernel void tfm_run_layer_norm(__global const uchar *x, __global const uchar *gamma,
                                 __global const uchar *beta, __global uchar *y,
                                 __global const struct tfm_step *steps, uint index,
                                 __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_layer_norm(x + s->at[0], gamma + s->at[1], beta + s->at[2], y + s->at[3], s, rows,
                   get_group_id(0), get_num_groups(0));
}
