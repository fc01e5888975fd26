/* SPDX-License-Identifier: MIT
 * swiglu: y = silu(gate) * up, silu(g) = g / (1 + exp(-g))   (Shazeer, arXiv:2002.05202)
 *   gate, up, y [N, width], each F32, F16 or BF16; computed in float, rounded once
 *
 * Work map: as in add.cl. y may be gate. */
#ifndef TFM_GATES_CL
#include "gates.cl"
#endif
#define TFM_SWIGLU_CL

static float16 tfm_swiglu_of(float16 gate, float16 up)
{
    return tfm_silu_of(gate) * up;
}

static void tfm_swiglu(__global const uchar *gate, __global const uchar *up, __global uchar *y,
                       __global const struct tfm_step *s, __global const int *rows, uint part,
                       uint parts)
{
    const ulong n = (ulong)tfm_rows(s, rows) * s->width;
    const ulong vectors = n / 16;
    const ulong end = tfm_share(vectors, part + 1, parts);

    for (ulong v = tfm_share(vectors, part, parts); v < end; v++)
        tfm_store16(tfm_swiglu_of(tfm_load16(gate, v * 16, s->type[0]),
                                  tfm_load16(up, v * 16, s->type[1])),
                    y, v * 16, s->type[2]);
    if (part + 1 == parts && n % 16 != 0) {
        const uint left = (uint)(n % 16);
        tfm_store_tail(tfm_swiglu_of(tfm_load_tail(gate, vectors * 16, left, s->type[0]),
                                     tfm_load_tail(up, vectors * 16, left, s->type[1])),
                       y, vectors * 16, left, s->type[2]);
    }
}

#ifndef TFM_PERSISTENT /* this function alone is a kernel, too */
__kernel void tfm_run_swiglu(__global const uchar *gate, __global const uchar *up,
                             __global uchar *y, __global const struct tfm_step *steps, uint index,
                             __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_swiglu(gate + s->at[0], up + s->at[1], y + s->at[2], s, rows, get_group_id(0),
               get_num_groups(0));
}
#endif
