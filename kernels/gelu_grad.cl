/* SPDX-License-Identifier: MIT
 * gelu_grad: see lib/ops/gelu_grad.c
 *   x, dy, dx [N, width], each F32, F16 or BF16; computed in float, rounded once
 *
 * Work map: as in add.cl. dx may be x. */
#ifndef TFM_GELU_CL
#include "gelu.cl"
#endif

/* Phi(x) + x phi(x), phi(x) = bell / sqrt(2 pi). Past the end of Phi both are 0 or 1. */
static tfm_floatv tfm_gelu_grad_erf(tfm_floatv x)
{
    tfm_floatv bell;
    const tfm_floatv phi = tfm_gelu_phi(x, &bell);
    const tfm_floatv near = clamp(x, (tfm_floatv)(-TFM_GELU_END), (tfm_floatv)(TFM_GELU_END));

    return fma(near * bell, (tfm_floatv)(0x1.988454p-2f), phi);
}

/* s + x s (1 - s) u', s = sigmoid(u), u = 2 sqrt(2/pi) (x + 0.044715 x^3), whose sigmoid is 0 or 1 past 10. */
static tfm_floatv tfm_gelu_grad_tanh(tfm_floatv x)
{
    const float b = 0x1.988454p+0f, c = 0x1.2444f2p-4f; /* 2 sqrt(2/pi), 0.044715 b */
    const tfm_floatv near = clamp(x, (tfm_floatv)(-10.0f), (tfm_floatv)(10.0f)),
                     square = near * near;
    const tfm_floatv u = near * fma(square, (tfm_floatv)(c), (tfm_floatv)(b));
    const tfm_floatv s = 1.0f / (1.0f + exp(-u)), rest = 1.0f / (1.0f + exp(u));

    return fma(near * s * rest, fma(square, (tfm_floatv)(3.0f * c), (tfm_floatv)(b)), s);
}

static tfm_floatv tfm_gelu_grad_of(tfm_floatv x, tfm_floatv dy, uint tanh_form)
{
    const tfm_floatv slope = tanh_form ? tfm_gelu_grad_tanh(x) : tfm_gelu_grad_erf(x);
    return select(slope, x, x != x) * dy; /* clamp may lose NaN */
}

static void tfm_gelu_grad(__global const uchar *x, __global const uchar *dy, __global uchar *dx,
                          __global const struct tfm_step *s, __global const int *rows, uint part,
                          uint parts)
{
    const ulong n = (ulong)tfm_rows(s, rows) * s->width,
                vectors = (n + TFM_VECTOR - 1) / TFM_VECTOR;
    const ulong end = tfm_end(vectors, part, parts);

    for (ulong v = tfm_first(vectors, part, parts); v < end; v += tfm_stride(parts)) {
        const ulong at = v * TFM_VECTOR;
        const uint left = (uint)min(n - at, (ulong)TFM_VECTOR);
        const tfm_floatv from = tfm_loadv_n(x, at, left, s->type[0]);
        const tfm_floatv above = tfm_loadv_n(dy, at, left, s->type[1]);
        tfm_storev_n(tfm_gelu_grad_of(from, above, s->tanh_form), dx, at, left, s->type[2]);
    }
}

__kernel void tfm_run_gelu_grad(__global const uchar *x, __global const uchar *dy,
                                __global uchar *dx, __global const struct tfm_step *steps,
                                uint index, __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_gelu_grad(x + s->at[0], dy + s->at[1], dx + s->at[2], s, rows, get_global_id(0),
                  get_global_size(0));
}
