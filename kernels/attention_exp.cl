/* SPDX-License-Identifier: MIT
 * The exponentials of attention and its gradient: polynomials, 16 lanes at a time. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif
#define TFM_ATTENTION_EXP_CL

/* exp of what is not far above 0, to 2 units in the last place; below -88, and of -INFINITY, 0. e^x = 2^n e^r
 * with |r| <= ln 2 / 2, e^r by the polynomial of Cephes' expf. */
TFM_INLINE float16 tfm_attention_exp(float16 x)
{
    x = select(x, (float16)(-88.0f), isless(x, (float16)(-88.0f)));
    const float16 bits = tfm_round_bits(x * 1.44269504f), n = bits - TFM_ROUNDING;
    float16 r = fma(n, (float16)(-0.693359375f), x), p = 1.9875691500e-4f;

    r = fma(n, (float16)(2.12194440e-4f), r);
    p = fma(p, r, (float16)(1.3981999507e-3f));
    p = fma(p, r, (float16)(8.3334519073e-3f));
    p = fma(p, r, (float16)(4.1665795894e-2f));
    p = fma(p, r, (float16)(1.6666665459e-1f));
    p = fma(p, r, (float16)(5.0000001201e-1f));
    p = fma(p, r * r, r) + 1.0f;
    return p * as_float16((as_int16(bits) << 23) + (127 << 23));
}

/* 2^x of what is not far above 0, for plain causal attention, where nothing is masked by a weight of 0: 2^n 2^r
 * with |r| <= 1/2, 2^r by its series, to 2 units in the last place near 0; what is below -126 counts as that. */
TFM_INLINE float16 tfm_attention_power(float16 x)
{
    x = x < (float16)(-126.0f) ? (float16)(-126.0f) : x;
    const float16 bits = tfm_round_bits(x), r = x - (bits - TFM_ROUNDING);
    float16 p = 1.5403530e-4f;

    p = fma(p, r, (float16)(1.3333558e-3f));
    p = fma(p, r, (float16)(9.6181291e-3f));
    p = fma(p, r, (float16)(5.5504109e-2f));
    p = fma(p, r, (float16)(2.4022651e-1f));
    p = fma(p, r, (float16)(6.9314718e-1f));
    p = fma(p, r, (float16)(1.0f));
    return as_float16(as_int16(p) + (as_int16(bits) << 23));
}
