/* SPDX-License-Identifier: MIT
 * swiglu: y = silu(gate) * up, silu(g) = g / (1 + exp(-g))   (Shazeer, arXiv:2002.05202)
 *   gate, up, y [N, width], each F32, F16 or BF16; computed in float, rounded once
 *
 * Work map: as in add.cl. y may be gate. */
#ifndef TFM_GATES_CL
#include "gates.cl"
#endif
#define TFM_SWIGLU_CL

static tfm_floatv tfm_swiglu_of(tfm_floatv gate, tfm_floatv up)
{
    return tfm_silu_of(gate) * up;
}

static void tfm_swiglu(__global const uchar *gate, __global const uchar *up, __global uchar *y,
                       __global const struct tfm_step *s, __global const int *rows, uint part,
                       uint parts)
{
    const ulong n = (ulong)tfm_rows(s, rows) * s->width;
    const ulong vectors = n / TFM_VECTOR;
    const ulong end = tfm_end(vectors, part, parts);

    for (ulong v = tfm_first(vectors, part, parts); v < end; v += tfm_stride(parts))
        tfm_storev(tfm_swiglu_of(tfm_loadv(gate, v * TFM_VECTOR, s->type[0]),
                                 tfm_loadv(up, v * TFM_VECTOR, s->type[1])),
                   y, v * TFM_VECTOR, s->type[2]);
    if (part + 1 == parts && n % TFM_VECTOR != 0) {
        const uint left = (uint)(n % TFM_VECTOR);
        tfm_storev_tail(tfm_swiglu_of(tfm_loadv_tail(gate, vectors * TFM_VECTOR, left, s->type[0]),
                                      tfm_loadv_tail(up, vectors * TFM_VECTOR, left, s->type[1])),
                        y, vectors * TFM_VECTOR, left, s->type[2]);
    }
}

#ifndef TFM_PERSISTENT /* this function alone is a kernel, too */
__kernel void tfm_run_swiglu(__global const uchar *gate, __global const uchar *up,
                             __global uchar *y, __global const struct tfm_step *steps, uint index,
                             __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_swiglu(gate + s->at[0], up + s->at[1], y + s->at[2], s, rows, get_global_id(0),
               get_global_size(0));
}
#endif
