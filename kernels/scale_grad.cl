/* SPDX-License-Identifier: MIT
 * scale_grad: see lib/ops/scale_grad.c
 *   x, dy, dx [N, width], each F32, F16 or BF16; computed in float, rounded once
 *
 * Work map: as in add.cl. dx may be x. */
#ifndef TFM_GATES_CL
#include "gates.cl"
#endif

/* 1 - tanh(z)^2 = 4 s (1 - s) with s = sigmoid(2 z). */
static float16 tfm_scale_grad_of(float16 x, float16 dy, __global const struct tfm_step *s)
{
    if (s->softcap == 0.0f)
        return s->scale * dy;
    const float16 z = x * (2.0f * s->scale) / s->softcap;
    return 4.0f * s->scale * tfm_sigmoid_of(z) * tfm_sigmoid_of(-z) * dy;
}

static void tfm_scale_grad(__global const uchar *x, __global const uchar *dy, __global uchar *dx,
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
        const float16 to = tfm_scale_grad_of(from, dy_from, s);
        if (left == 16)
            tfm_store16(to, dx, v * 16, s->type[2]);
        else
            tfm_store_tail(to, dx, v * 16, left, s->type[2]);
    }
}

__kernel void tfm_run_scale_grad(__global const uchar *x, __global const uchar *dy, __global uchar *dx,
                                __global const struct tfm_step *steps, uint index,
                                __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_scale_grad(x + s->at[0], dy + s->at[1], dx + s->at[2], s, rows, get_group_id(0),
                  get_num_groups(0));
}
