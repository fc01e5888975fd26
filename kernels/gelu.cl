/* SPDX-License-Identifier: MIT
 * gelu: y = x Phi(x), Phi the standard normal distribution   (Hendrycks and Gimpel, arXiv:1606.08415)
 *   x, y [N, width], each F32, F16 or BF16; computed in float, rounded once
 *   tanh_form 0   x / 2 erfc(-x / sqrt 2)
 *   tanh_form 1   x / (1 + exp(w)), w = -2 sqrt(2/pi) (x + 0.044715 x^3)
 *
 * In the tail the rounding of the argument of erfc or exp is what limits the result: an error of the
 * argument counts |argument| times. So each argument is made in two floats, and the lower one comes
 * in as a factor, by the first derivative. Far out it is dropped, before it meets an infinity.
 *
 * Work map: as in add.cl. y may be x. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif

static float16 tfm_gelu_erf(float16 x)
{
    const float high = 0x1.6a09e6p-1f, low = 0x1.9fcef4p-27f; /* 1 / sqrt 2 */
    const float16 z = x * -high, rest = fma(x, (float16)(-high), -z) - x * low;
    /* -erfc'(z) / erfc(z), between its bounds z + sqrt(z^2 + 4/pi) and z + sqrt(z^2 + 2) */
    const float16 slope = z + sqrt(fma(z, z, (float16)(1.27f)));
    const float16 change = select(rest * slope, (float16)(0.0f), fabs(x) > (float16)(16.0f));
    const float16 tail = erfc(z), half_x = 0.5f * x;

    return select(half_x * fma(-tail, change, tail), (float16)(0.0f), x == (float16)(-INFINITY));
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
