/* SPDX-License-Identifier: MIT
 * The gradients of both norms; formulas in lib/ops/rms_norm_grad.c and layer_norm_grad.c
 *   x, dy, dx [N, vectors, width] F32, gamma [width] F32, moments [N vectors][2]: m and r of each vector
 *   dgamma, dbeta [width] F32, added to; either may be absent
 *
 * Work map: a part takes a run of vectors for dx, then a run of columns, 16 at a time, for the sums. A vector is
 * summed in 16 lanes and a tail; a column in blocks of 64 vectors, whose sums are added in order: the order
 * depends on shapes alone. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif
#define TFM_NORM_GRAD_CL

#define TFM_NORM_BLOCK 64u /* vectors that are summed before they are added to the sum so far */

/* m and r of a vector. */
static float2 tfm_norm_moments(__global const float *x, __global const struct tfm_step *s,
                               int centered)
{
    const uint width = s->width, whole = width & ~15u;
    float16 lanes = 0.0f;
    float tail = 0.0f, mean = 0.0f;

    if (centered) {
        for (uint i = 0; i < whole; i += 16)
            lanes += vload16(0, x + i);
        for (uint i = whole; i < width; i++)
            tail += x[i];
        mean = (tfm_sum16(lanes) + tail) / (float)width;
        lanes = 0.0f;
        tail = 0.0f;
    }
    for (uint i = 0; i < whole; i += 16) {
        const float16 v = vload16(0, x + i) - mean;
        lanes = fma(v, v, lanes);
    }
    for (uint i = whole; i < width; i++)
        tail = fma(x[i] - mean, x[i] - mean, tail);
    return (float2)(mean, 1.0f / sqrt((tfm_sum16(lanes) + tail) / (float)width + s->eps));
}

static void tfm_norm_grad_row(__global const float *x, __global const float *gamma,
                              __global const float *dy, __global float *dx, __global float *moments,
                              __global const struct tfm_step *s, int centered)
{
    const uint width = s->width, whole = width & ~15u;
    const float2 m = tfm_norm_moments(x, s, centered);
    float16 sum_g = 0.0f, sum_gn = 0.0f;
    float tail_g = 0.0f, tail_gn = 0.0f;

    for (uint i = 0; i < whole; i += 16) {
        const float16 g = vload16(0, dy + i) * vload16(0, gamma + i);
        sum_g += g;
        sum_gn = fma(g, (vload16(0, x + i) - m.s0) * m.s1, sum_gn);
    }
    for (uint i = whole; i < width; i++) {
        const float g = dy[i] * gamma[i];
        tail_g += g;
        tail_gn = fma(g, (x[i] - m.s0) * m.s1, tail_gn);
    }
    const float mean_g = centered ? (tfm_sum16(sum_g) + tail_g) / (float)width : 0.0f;
    const float mean_gn = (tfm_sum16(sum_gn) + tail_gn) / (float)width;

    for (uint i = 0; i < whole; i += 16) {
        const float16 n = (vload16(0, x + i) - m.s0) * m.s1;
        vstore16(m.s1 * (vload16(0, dy + i) * vload16(0, gamma + i) - mean_g - n * mean_gn), 0,
                 dx + i);
    }
    for (uint i = whole; i < width; i++)
        dx[i] = m.s1 * (dy[i] * gamma[i] - mean_g - (x[i] - m.s0) * m.s1 * mean_gn);
    moments[0] = m.s0;
    moments[1] = m.s1;
}

static void tfm_norm_grad(__global const float *x, __global const float *gamma,
                          __global const float *dy, __global float *dx, __global float *moments,
                          __global const struct tfm_step *s, __global const int *rows, int centered,
                          uint part, uint parts)
{
    const uint n = tfm_vectors(s, rows), end = (uint)tfm_share(n, part + 1, parts);

    for (uint v = (uint)tfm_share(n, part, parts); v < end; v++) {
        const ulong at = (ulong)v * s->width;
        tfm_norm_grad_row(x + at, gamma, dy + at, dx + at, moments + 2 * (ulong)v, s, centered);
    }
}

/* 16 columns, or the `left` last ones. */
static void tfm_norm_grad_columns(__global const float *x, __global const float *dy,
                                  __global const float *moments, __global uchar *dgamma,
                                  __global uchar *dbeta, uint n, uint column, uint left,
                                  __global const struct tfm_step *s)
{
    float16 all_gamma = 0.0f, all_beta = 0.0f;

    for (uint first = 0; first < n; first += TFM_NORM_BLOCK) {
        const uint end = min(n, first + TFM_NORM_BLOCK);
        float16 gamma = 0.0f, beta = 0.0f;
        for (uint v = first; v < end; v++) {
            const ulong at = (ulong)v * s->width + column;
            const float m = moments[2 * (ulong)v], r = moments[2 * (ulong)v + 1];
            const float16 g =
                left == 16 ? vload16(0, dy + at)
                           : tfm_load_tail((__global const uchar *)dy, at, left, TFM_STEP_F32);
            const float16 from =
                left == 16 ? vload16(0, x + at)
                           : tfm_load_tail((__global const uchar *)x, at, left, TFM_STEP_F32);
            gamma = fma(g, (from - m) * r, gamma);
            beta += g;
        }
        all_gamma += gamma;
        all_beta += beta;
    }
    if (s->type[3] != TFM_STEP_NONE)
        tfm_store_tail(tfm_load_tail(dgamma, column, left, TFM_STEP_F32) + all_gamma, dgamma,
                       column, left, TFM_STEP_F32);
    if (s->type[4] != TFM_STEP_NONE)
        tfm_store_tail(tfm_load_tail(dbeta, column, left, TFM_STEP_F32) + all_beta, dbeta, column,
                       left, TFM_STEP_F32);
}

static void tfm_norm_grad_sums(__global const float *x, __global const float *dy,
                               __global const float *moments, __global uchar *dgamma,
                               __global uchar *dbeta, __global const struct tfm_step *s,
                               __global const int *rows, uint part, uint parts)
{
    const uint n = tfm_vectors(s, rows), units = (s->width + 15) / 16;
    const uint end = (uint)tfm_share(units, part + 1, parts);

    for (uint u = (uint)tfm_share(units, part, parts); u < end && n > 0; u++)
        tfm_norm_grad_columns(x, dy, moments, dgamma, dbeta, n, u * 16, min(s->width - u * 16, 16u),
                              s);
}
