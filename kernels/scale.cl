/* SPDX-License-Identifier: MIT
 * scale: y = factor * x, or softcap * tanh(factor * x / softcap) when softcap > 0
 *   x, y [N, width], each F32, F16 or BF16; computed in float, rounded once
 *
 * Work map: as in add.cl. y may be x. */
#ifndef TFM_GATES_CL
#include "gates.cl"
#endif

static tfm_floatv tfm_scale_of(tfm_floatv x, __global const struct tfm_step *s)
{
    const tfm_floatv y = x * s->scale;
    return s->softcap > 0.0f ? s->softcap * tfm_tanh(y / s->softcap) : y;
}

static void tfm_scale(__global const uchar *x, __global uchar *y, __global const struct tfm_step *s,
                      __global const int *rows, uint part, uint parts)
{
    const ulong n = (ulong)tfm_rows(s, rows) * s->width;
    const ulong vectors = n / TFM_VECTOR;
    const ulong end = tfm_end(vectors, part, parts);

    for (ulong v = tfm_first(vectors, part, parts); v < end; v += tfm_stride(parts))
        tfm_storev(tfm_scale_of(tfm_loadv(x, v * TFM_VECTOR, s->type[0]), s), y, v * TFM_VECTOR,
                   s->type[1]);
    if (part + 1 == parts && n % TFM_VECTOR != 0) {
        const uint left = (uint)(n % TFM_VECTOR);
        tfm_storev_tail(tfm_scale_of(tfm_loadv_tail(x, vectors * TFM_VECTOR, left, s->type[0]), s),
                        y, vectors * TFM_VECTOR, left, s->type[1]);
    }
}

__kernel void tfm_run_scale(__global const uchar *x, __global uchar *y,
                            __global const struct tfm_step *steps, uint index,
                            __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_scale(x + s->at[0], y + s->at[1], s, rows, get_global_id(0), get_global_size(0));
}
