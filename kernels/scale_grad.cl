/* SPDX-License-Identifier: MIT
 * scale_grad: see lib/ops/scale_grad.c
 *   x, dy, dx [N, width], each F32, F16 or BF16; computed in float, rounded once
 *
 * Work map: as in add.cl. dx may be x. */
#ifndef TFM_GATES_CL
#include "gates.cl"
#endif

/* 1 - tanh(z)^2 = 4 s (1 - s) with s = sigmoid(2 z). */
static tfm_floatv tfm_scale_grad_of(tfm_floatv x, tfm_floatv dy, __global const struct tfm_step *s)
{
    if (s->softcap == 0.0f)
        return s->scale * dy;
    const tfm_floatv z = x * (2.0f * s->scale) / s->softcap;
    return 4.0f * s->scale * tfm_sigmoid_of(z) * tfm_sigmoid_of(-z) * dy;
}

static void tfm_scale_grad(__global const uchar *x, __global const uchar *dy, __global uchar *dx,
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
        tfm_storev_n(tfm_scale_grad_of(from, above, s), dx, at, left, s->type[2]);
    }
}

__kernel void tfm_run_scale_grad(__global const uchar *x, __global const uchar *dy,
                                 __global uchar *dx, __global const struct tfm_step *steps,
                                 uint index, __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_scale_grad(x + s->at[0], dy + s->at[1], dx + s->at[2], s, rows, get_global_id(0),
                   get_global_size(0));
}
