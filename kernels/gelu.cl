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
#ifndef TFM_VECTOR_CL
#include "vector.cl"
#endif
#define TFM_GELU_CL

/* exp(y + rest) for y in [-86, 0] and a small rest: 2^k exp(r), k the nearest integer of y / ln 2, r what
 * is left. Shorter than the built-in exp, which takes any y and no rest. 1.1e-8 off at most, and
 * 1e-7 with the roundings. */
static tfm_floatv tfm_gelu_exp(tfm_floatv y, tfm_floatv rest)
{
    const float magic =
        0x1.8p+23f; /* in a sum with it the last bits of the mantissa are an integer */
    const tfm_floatv shifted = fma(y, (tfm_floatv)(0x1.715476p+0f), (tfm_floatv)(magic));
    const tfm_floatv k = shifted - magic;
    tfm_floatv r = fma(k, (tfm_floatv)(-0x1.62e4p-1f), y);
    r = fma(k, (tfm_floatv)(-0x1.7f7d1cp-20f), r) + rest;
    tfm_floatv p = (tfm_floatv)(0x1.6d1606p-10f);
    p = fma(p, r, (tfm_floatv)(0x1.12106cp-7f));
    p = fma(p, r, (tfm_floatv)(0x1.555516p-5f));
    p = fma(p, r, (tfm_floatv)(0x1.5554d8p-3f));
    p = fma(p, r, (tfm_floatv)(0.5f));
    p = fma(p * r, r, r) + 1.0f;

    return tfm_as_floatv(tfm_as_intv(p) + (tfm_as_intv(shifted) << 23));
}

/* Past 13.1 Phi(-t) is less than 1e-38. */
#define TFM_GELU_END 13.1f

/* Phi(x), and *bell = exp(-t^2 / 2).
 * g(t) (t + 4): a polynomial in s = (t - 4) / (t + 4), fitted at Chebyshev's points of t in [0, 16]; 1.5e-8
 * of g at most, and 3e-7 with the roundings. */
static tfm_floatv tfm_gelu_phi(tfm_floatv x, tfm_floatv *bell)
{
    const tfm_floatv t = fmin(fabs(x), (tfm_floatv)(TFM_GELU_END));
    const tfm_floatv r = 1.0f / (t + 4.0f), s = (t - 4.0f) * r;
    tfm_floatv g = (tfm_floatv)(-0x1.10e2e2p-13f);
    g = fma(g, s, (tfm_floatv)(0x1.777e6ap-13f));
    g = fma(g, s, (tfm_floatv)(0x1.99d3fcp-10f));
    g = fma(g, s, (tfm_floatv)(-0x1.ccd6aap-9f));
    g = fma(g, s, (tfm_floatv)(-0x1.ecfcb4p-8f));
    g = fma(g, s, (tfm_floatv)(0x1.eed778p-5f));
    g = fma(g, s, (tfm_floatv)(-0x1.7e0036p-3f));
    g = fma(g, s, (tfm_floatv)(0x1.8c6d90p-2f));
    g = fma(g, s, (tfm_floatv)(-0x1.373e38p-1f));
    g = fma(g, s, (tfm_floatv)(0x1.82b4bcp-1f));

    const tfm_floatv square = t * t, rest = fma(t, t, -square);
    *bell = tfm_gelu_exp(-0.5f * square, -0.5f * rest);
    const tfm_floatv below = *bell * (g * r); /* Phi(-t) */

    return select(1.0f - below, below, x < (tfm_floatv)(0.0f));
}

static tfm_floatv tfm_gelu_erf(tfm_floatv x)
{
    tfm_floatv bell;
    const tfm_floatv phi = tfm_gelu_phi(x, &bell);

    return select(x * phi, (tfm_floatv)(0.0f), x < (tfm_floatv)(-TFM_GELU_END));
}

static tfm_floatv tfm_gelu_tanh(tfm_floatv x)
{
    const float b = 0x1.988454p+0f, b_low = -0x1.857936p-25f; /* 2 sqrt(2/pi) */
    const float c = 0x1.2444f2p-4f, c_low = 0x1.49b16ap-29f;  /* 0.044715 b */
    const tfm_floatv square = x * x, square_low = fma(x, x, -square);
    const tfm_floatv cubic = square * c, sum = cubic + b, back = sum - b;
    const tfm_floatv sum_low =
        (b - (sum - back)) + (cubic - back) + fma(square, (tfm_floatv)(c), -cubic) +
        fma(square_low, (tfm_floatv)(c), fma(square, (tfm_floatv)(c_low), b_low));
    const tfm_floatv w = -x * sum, rest = fma(-x, sum, -w) - x * sum_low;
    const tfm_floatv e = exp(w);
    const tfm_floatv change = select(e * rest, (tfm_floatv)(0.0f), fabs(x) > (tfm_floatv)(9.0f));
    const tfm_floatv quotient = x / (1.0f + e + change);

    return select(quotient, (tfm_floatv)(0.0f), x == (tfm_floatv)(-INFINITY));
}

static tfm_floatv tfm_gelu_of(tfm_floatv x, uint tanh_form)
{
    return tanh_form ? tfm_gelu_tanh(x) : tfm_gelu_erf(x);
}

static void tfm_gelu(__global const uchar *x, __global uchar *y, __global const struct tfm_step *s,
                     __global const int *rows, uint part, uint parts)
{
    const ulong n = (ulong)tfm_rows(s, rows) * s->width,
                vectors = (n + TFM_VECTOR - 1) / TFM_VECTOR;
    const ulong end = tfm_end(vectors, part, parts);

    /* The tail goes through the same code: erfc of so many lanes is long, and some compilers take minutes
     * for a second copy. */
    for (ulong v = tfm_first(vectors, part, parts); v < end; v += tfm_stride(parts)) {
        const ulong at = v * TFM_VECTOR;
        const uint left = (uint)min(n - at, (ulong)TFM_VECTOR);
        const tfm_floatv from = tfm_loadv_n(x, at, left, s->type[0]);
        tfm_storev_n(tfm_gelu_of(from, s->tanh_form), y, at, left, s->type[1]);
    }
}

__kernel void tfm_run_gelu(__global const uchar *x, __global uchar *y,
                           __global const struct tfm_step *steps, uint index,
                           __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_gelu(x + s->at[0], y + s->at[1], s, rows, get_global_id(0), get_global_size(0));
}
