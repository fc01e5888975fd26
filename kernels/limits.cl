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
    float16 sums[12];

#pragma unroll
    for (uint i = 0; i < 12; i++)
        sums[i] = (float16)(float)(i + 1);
    for (uint round = 0; round < each; round++) {
#pragma unroll
        for (uint i = 0; i < 12; i++)
            sums[i] = fma(sums[i], (float16)factor, (float16)factor);
    }
    float16 all = 0.0f;
#pragma unroll
    for (uint i = 0; i < 12; i++)
        all += sums[i];
    const float8 e = all.lo + all.hi;
    const float4 f = e.lo + e.hi;
    sink[get_global_id(0)] = f.x + f.y + f.z + f.w;
}
