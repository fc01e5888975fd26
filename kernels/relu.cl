/* SPDX-License-Identifier: MIT
 * relu: y = max(x, 0), exactly; NaN stays NaN
 *   x, y [N, width], each F32, F16 or BF16; computed in float, rounded once
 *
 * Work map: as in add.cl. y may be x. */
#ifndef TFM_VECTOR_CL
#include "vector.cl"
#endif

static tfm_floatv tfm_positive(tfm_floatv x)
{
    return select(x, (tfm_floatv)(0.0f), x < (tfm_floatv)(0.0f));
}

static void tfm_relu(__global const uchar *x, __global uchar *y, __global const struct tfm_step *s,
                     __global const int *rows, uint part, uint parts)
{
    const ulong n = (ulong)tfm_rows(s, rows) * s->width;
    const ulong vectors = n / TFM_VECTOR;
    const ulong end = tfm_end(vectors, part, parts);

    for (ulong v = tfm_first(vectors, part, parts); v < end; v += tfm_stride(parts))
        tfm_storev(tfm_positive(tfm_loadv(x, v * TFM_VECTOR, s->type[0])), y, v * TFM_VECTOR,
                   s->type[1]);
    if (part + 1 == parts && n % TFM_VECTOR != 0) {
        const uint left = (uint)(n % TFM_VECTOR);
        tfm_storev_tail(tfm_positive(tfm_loadv_tail(x, vectors * TFM_VECTOR, left, s->type[0])), y,
                        vectors * TFM_VECTOR, left, s->type[1]);
    }
}

__kernel void tfm_run_relu(__global const uchar *x, __global uchar *y,
                           __global const struct tfm_step *steps, uint index,
                           __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_relu(x + s->at[0], y + s->at[1], s, rows, get_global_id(0), get_global_size(0));
}
