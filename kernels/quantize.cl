/* SPDX-License-Identifier: MIT
 * A block of 32 values of x as integers, and a block of a sum of products with them, for many rows
 * (linear_int8.cl) and for few (linear_int8_few.cl) alike: both give the same bits
 *   x = e q,  e = max |x| / 127
 *   sum += d e (sum of w q) + m e (sum of q),   w unsigned, of a block with scale d and offset m */
#ifndef TFM_INT8_CL
#include "int8.cl"
#endif
#define TFM_QUANTIZE_CL

/* The largest of |a| and |b|; as bits a NaN is larger than anything else, and comes out. */
static float tfm_int8_most(float16 a, float16 b)
{
    const uint16 v = max(as_uint16(fabs(a)), as_uint16(fabs(b)));
    const uint8 w = max(v.lo, as_uint8(tfm_high(as_float16(v))));
    const uint4 x = max(w.lo, w.hi);
    const uint2 y = max(x.lo, x.hi);
    return as_float(max(y.x, y.y));
}

/* One block of one row: q, e = scale[0], e (sum of q) = scale[stride]. A NaN or an infinity makes e a NaN. */
static void tfm_int8_quantize_block(__global const float *x, __global char *q,
                                    __global float *scale, uint stride)
{
    const float16 a = vload16(0, x), b = vload16(1, x);
    const float most = tfm_int8_most(a, b);
    const float factor = most > 0.0f ? 127.0f / most : 0.0f;
    const float e = most / 127.0f + most * 0.0f;
    const int16 qa = as_int16(tfm_round_bits(a * factor)) - as_int(TFM_ROUNDING);
    const int16 qb = as_int16(tfm_round_bits(b * factor)) - as_int(TFM_ROUNDING);

    vstore16(convert_char16(qa), 0, q);
    vstore16(convert_char16(qb), 1, q);
    scale[0] = e;
    scale[stride] = e * tfm_sum16(convert_float16(qa + qb));
}

/* One block more; `products` is exact. */
TFM_INLINE float16 tfm_int8_add(float16 sum, int16 products, float16 d, float16 m, float e,
                                float eq)
{
    return fma(m, (float16)(eq), fma(convert_float16(products), d * e, sum));
}

/* sums [tile] and bias to columns [column, column + 16) of the first n of `tile` rows, 8 at most, of y. */
TFM_INLINE void tfm_int8_store(const uint tile, const float16 *sums, __global const uchar *bias,
                               __global float *y, uint column, uint n,
                               __global const struct tfm_step *s)
{
    const uint lanes = min(s->out - column, TFM_PANEL);
    float16 b = 0.0f;

    if (s->type[2] != TFM_STEP_NONE)
        b = lanes == TFM_PANEL ? tfm_load16(bias, column, s->type[2])
                               : tfm_load_tail(bias, column, lanes, s->type[2]);
#pragma unroll
    for (uint t = 0; t < 8; t++) {
        __global float *to = y + (ulong)t * s->out + column;
        if (t >= tile || t >= n)
            continue;
        if (lanes == TFM_PANEL)
            tfm_put16(sums[t] + b, 0, to);
        else
            tfm_store_tail(sums[t] + b, (__global uchar *)to, 0, lanes, TFM_STEP_F32);
    }
}
