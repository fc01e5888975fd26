/* SPDX-License-Identifier: MIT
 * What a device can do at most, for the table of TFM_PROFILE; no op.
 *   read: each item sums vectors of 16 floats of x, `each` of them (a multiple of 4), from number
 *         item * first on, `step` apart:  first = each, step = 1: a block an item;  first = 1, step = items: side by side
 *   fma:  each item does `each` rounds of 12 multiply-adds on vectors of 16 floats that depend on nothing else
 * sink [items] keeps the compiler from leaving the work out. */

__kernel void tfm_run_limit_read(__global const float *x, __global float *sink, ulong each,
                                 ulong first, ulong step)
{
    const size_t item = get_global_id(0);
    ulong at = item * first;
    float16 a = 0.0f, b = 0.0f, c = 0.0f, d = 0.0f;

    for (ulong i = 0; i < each; i += 4, at += 4 * step) {
        a += vload16(at, x);
        b += vload16(at + step, x);
        c += vload16(at + 2 * step, x);
        d += vload16(at + 3 * step, x);
    }
    a += b + c + d;
    const float8 e = a.lo + a.hi;
    const float4 f = e.lo + e.hi;
    sink[item] = f.x + f.y + f.z + f.w;
}

__kernel void tfm_run_limit_fma(__global float *sink, uint each, float factor)
{
    const float16 f = (float16)factor;
    float16 a0 = 0.0f, a1 = 1.0f, a2 = 2.0f, a3 = 3.0f, a4 = 4.0f, a5 = 5.0f;
    float16 b0 = 6.0f, b1 = 7.0f, b2 = 8.0f, b3 = 9.0f, b4 = 10.0f, b5 = 11.0f;

    for (uint round = 0; round < each; round++) {
        a0 = fma(a0, f, f);
        a1 = fma(a1, f, f);
        a2 = fma(a2, f, f);
        a3 = fma(a3, f, f);
        a4 = fma(a4, f, f);
        a5 = fma(a5, f, f);
        b0 = fma(b0, f, f);
        b1 = fma(b1, f, f);
        b2 = fma(b2, f, f);
        b3 = fma(b3, f, f);
        b4 = fma(b4, f, f);
        b5 = fma(b5, f, f);
    }
    const float16 all = a0 + a1 + a2 + a3 + a4 + a5 + b0 + b1 + b2 + b3 + b4 + b5;
    const float8 e = all.lo + all.hi;
    const float4 g = e.lo + e.hi;
    sink[get_global_id(0)] = g.x + g.y + g.z + g.w;
}
