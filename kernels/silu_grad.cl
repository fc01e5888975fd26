/* SPDX-License-Identifier: MIT
 * silu_grad: see lib/ops/silu_grad.c
 *   x, dy, dx [N, width], each F32, F16 or BF16; computed in float, rounded once
 *
 * Work map: as in add.cl. dx may be x. */
#ifndef TFM_GATES_CL
#include "gates.cl"
#endif

/* s + silu(x) (1 - s), and 1 - s is the sigmoid of -x. Where that is 0 the sum is 1, though x be infinite. */
static tfm_floatv tfm_silu_grad_of(tfm_floatv x)
{
    const tfm_floatv rest = tfm_silu_of(x) * tfm_sigmoid_of(-x);
    return tfm_sigmoid_of(x) + select(rest, (tfm_floatv)(0.0f), x == (tfm_floatv)(INFINITY));
}

static void tfm_silu_grad(__global const uchar *x, __global const uchar *dy, __global uchar *dx,
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
        tfm_storev_n(tfm_silu_grad_of(from) * above, dx, at, left, s->type[2]);
    }
}

__kernel void tfm_run_silu_grad(__global const uchar *x, __global const uchar *dy,
                                __global uchar *dx, __global const struct tfm_step *steps,
                                uint index, __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_silu_grad(x + s->at[0], dy + s->at[1], dx + s->at[2], s, rows, get_global_id(0),
                  get_global_size(0));
}
