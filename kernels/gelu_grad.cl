/* SPDX-License-Identifier: MIT
 * gelu_grad: see lib/ops/gelu_grad.c
 *   x, dy, dx [N, width], each F32, F16 or BF16; computed in float, rounded once
 *
 * Work map: as in add.cl. dx may be x. */
#ifndef TFM_GELU_CL
#include "gelu.cl"
#endif

/* Phi(x) + x phi(x), phi(x) = bell / sqrt(2 pi). Past the end of Phi both are 0 or 1. */
static float16 tfm_gelu_grad_erf(float16 x)
{
    float16 bell;
    const float16 phi = tfm_gelu_phi(x, &bell);
    const float16 near = clamp(x, (float16)(-TFM_GELU_END), (float16)(TFM_GELU_END));

    return fma(near * bell, (float16)(0x1.988454p-2f), phi);
}

/* s + x s (1 - s) u', s = sigmoid(u), u = 2 sqrt(2/pi) (x + 0.044715 x^3), whose sigmoid is 0 or 1 past 10. */
static float16 tfm_gelu_grad_tanh(float16 x)
{
    const float b = 0x1.988454p+0f, c = 0x1.2444f2p-4f; /* 2 sqrt(2/pi), 0.044715 b */
    const float16 near = clamp(x, (float16)(-10.0f), (float16)(10.0f)), square = near * near;
    const float16 u = near * fma(square, (float16)(c), (float16)(b));
    const float16 s = 1.0f / (1.0f + exp(-u)), rest = 1.0f / (1.0f + exp(u));

    return fma(near * s * rest, fma(square, (float16)(3.0f * c), (float16)(b)), s);
}

static float16 tfm_gelu_grad_of(float16 x, float16 dy, uint tanh_form)
{
    const float16 slope = tanh_form ? tfm_gelu_grad_tanh(x) : tfm_gelu_grad_erf(x);
    return select(slope, x, x != x) * dy; /* clamp may lose NaN */
}

static void tfm_gelu_grad(__global const uchar *x, __global const uchar *dy, __global uchar *dx,
                          __global const struct tfm_step *s, __global const int *rows, uint part,
                          uint parts)
{
    const ulong n = (ulong)tfm_rows(s, rows) * s->width, vectors = (n + 15) / 16;
    const ulong end = tfm_share(vectors, part + 1, parts);

    for (ulong v = tfm_share(vectors, part, parts); v < end; v++) {
        const uint left = (uint)min(n - v * 16, (ulong)16);
        const float16 from = left == 16 ? tfm_load16(x, v * 16, s->type[0])
                                        : tfm_load_tail(x, v * 16, left, s->type[0]);
        const float16 dy_from = left == 16 ? tfm_load16(dy, v * 16, s->type[1])
                                           : tfm_load_tail(dy, v * 16, left, s->type[1]);
        const float16 to = tfm_gelu_grad_of(from, dy_from, s->tanh_form);
        if (left == 16)
            tfm_store16(to, dx, v * 16, s->type[2]);
        else
            tfm_store_tail(to, dx, v * 16, left, s->type[2]);
    }
}

__kernel void tfm_run_gelu_grad(__global const uchar *x, __global const uchar *dy, __global uchar *dx,
                                __global const struct tfm_step *steps, uint index,
                                __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_gelu_grad(x + s->at[0], dy + s->at[1], dx + s->at[2], s, rows, get_group_id(0),
                  get_num_groups(0));
}
