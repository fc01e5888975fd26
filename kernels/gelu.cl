/* SPDX-License-Identifier: MIT
 * gelu: y = x Phi(x), Phi the standard normal distribution   (Hendrycks and Gimpel, arXiv:1606.08415)
 *   x, y [N, width], each F32, F16 or BF16; computed in float, rounded once
 *   tanh_form 0   x Phi(x): with t = |x|, Phi(-t) = exp(-t^2/2) g(t), and Phi(t) = 1 - Phi(-t)
 *   tanh_form 1   x / (1 + exp(w)), w = -2 sqrt(2/pi) (x + 0.044715 x^3)
 *
 * In the tail the rounding of the argument of exp is what limits the result: an error of the argument
 * counts |argument| times. So each argument is made in two floats, and the lower one comes in as a
 * factor, by the first derivative, or into the reduced argument. Far out it is dropped, before it meets
 * an infinity.
 *
 * Work map: as in add.cl. y may be x. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif
#define TFM_GELU_CL

/* exp(y + rest) for y in [-86, 0] and a small rest: 2^k exp(r), k the nearest integer of y / ln 2, r what
 * is left. Shorter than the built-in exp, which takes any y and no rest. 1.1e-8 off at most, and
 * 1e-7 with the roundings. */
static float16 tfm_gelu_exp(float16 y, float16 rest)
{
    const float magic = 0x1.8p+23f; /* in a sum with it the last bits of the mantissa are an integer */
    const float16 shifted = fma(y, (float16)(0x1.715476p+0f), (float16)(magic));
    const float16 k = shifted - magic;
    float16 r = fma(k, (float16)(-0x1.62e4p-1f), y);
    r = fma(k, (float16)(-0x1.7f7d1cp-20f), r) + rest;
    float16 p = (float16)(0x1.6d1606p-10f);
    p = fma(p, r, (float16)(0x1.12106cp-7f));
    p = fma(p, r, (float16)(0x1.555516p-5f));
    p = fma(p, r, (float16)(0x1.5554d8p-3f));
    p = fma(p, r, (float16)(0.5f));
    p = fma(p * r, r, r) + 1.0f;

    return as_float16(as_int16(p) + (as_int16(shifted) << 23));
}

/* Past 13.1 Phi(-t) is less than 1e-38. */
#define TFM_GELU_END 13.1f

/* Phi(x), and *bell = exp(-t^2 / 2).
 * g(t) (t + 4): a polynomial in s = (t - 4) / (t + 4), fitted at Chebyshev's points of t in [0, 16]; 1.5e-8
 * of g at most, and 3e-7 with the roundings. */
static float16 tfm_gelu_phi(float16 x, float16 *bell)
{
    const float16 t = fmin(fabs(x), (float16)(TFM_GELU_END));
    const float16 r = 1.0f / (t + 4.0f), s = (t - 4.0f) * r;
    float16 g = (float16)(-0x1.10e2e2p-13f);
    g = fma(g, s, (float16)(0x1.777e6ap-13f));
    g = fma(g, s, (float16)(0x1.99d3fcp-10f));
    g = fma(g, s, (float16)(-0x1.ccd6aap-9f));
    g = fma(g, s, (float16)(-0x1.ecfcb4p-8f));
    g = fma(g, s, (float16)(0x1.eed778p-5f));
    g = fma(g, s, (float16)(-0x1.7e0036p-3f));
    g = fma(g, s, (float16)(0x1.8c6d90p-2f));
    g = fma(g, s, (float16)(-0x1.373e38p-1f));
    g = fma(g, s, (float16)(0x1.82b4bcp-1f));

    const float16 square = t * t, rest = fma(t, t, -square);
    *bell = tfm_gelu_exp(-0.5f * square, -0.5f * rest);
    const float16 below = *bell * (g * r); /* Phi(-t) */

    return select(1.0f - below, below, x < (float16)(0.0f));
}

static float16 tfm_gelu_erf(float16 x)
{
    float16 bell;
    const float16 phi = tfm_gelu_phi(x, &bell);

    return select(x * phi, (float16)(0.0f), x < (float16)(-TFM_GELU_END));
}

static float16 tfm_gelu_tanh(float16 x)
{
    const float b = 0x1.988454p+0f, b_low = -0x1.857936p-25f; /* 2 sqrt(2/pi) */
    const float c = 0x1.2444f2p-4f, c_low = 0x1.49b16ap-29f;  /* 0.044715 b */
    const float16 square = x * x, square_low = fma(x, x, -square);
    const float16 cubic = square * c, sum = cubic + b, back = sum - b;
    const float16 sum_low = (b - (sum - back)) + (cubic - back) +
                            fma(square, (float16)(c), -cubic) +
                            fma(square_low, (float16)(c), fma(square, (float16)(c_low), b_low));
    const float16 w = -x * sum, rest = fma(-x, sum, -w) - x * sum_low;
    const float16 e = exp(w);
    const float16 change = select(e * rest, (float16)(0.0f), fabs(x) > (float16)(9.0f));
    const float16 quotient = x / (1.0f + e + change);

    return select(quotient, (float16)(0.0f), x == (float16)(-INFINITY));
}

static float16 tfm_gelu_of(float16 x, uint tanh_form)
{
    return tanh_form ? tfm_gelu_tanh(x) : tfm_gelu_erf(x);
}

static void tfm_gelu(__global const uchar *x, __global uchar *y, __global const struct tfm_step *s,
                     __global const int *rows, uint part, uint parts)
{
    const ulong n = (ulong)tfm_rows(s, rows) * s->width, vectors = (n + 15) / 16;
    const ulong end = tfm_share(vectors, part + 1, parts);

    /* The tail goes through the same code: erfc of 16 lanes is long, and some compilers take minutes
     * for a second copy. */
    for (ulong v = tfm_share(vectors, part, parts); v < end; v++) {
        const uint left = (uint)min(n - v * 16, (ulong)16);
        const float16 from = left == 16 ? tfm_load16(x, v * 16, s->type[0])
                                        : tfm_load_tail(x, v * 16, left, s->type[0]);
        const float16 to = tfm_gelu_of(from, s->tanh_form);
        if (left == 16)
            tfm_store16(to, y, v * 16, s->type[1]);
        else
            tfm_store_tail(to, y, v * 16, left, s->type[1]);
    }
}

__kernel void tfm_run_gelu(__global const uchar *x, __global uchar *y,
                           __global const struct tfm_step *steps, uint index,
                           __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_gelu(x + s->at[0], y + s->at[1], s, rows, get_group_id(0), get_num_groups(0));
}
