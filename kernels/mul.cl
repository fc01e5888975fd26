/* SPDX-License-Identifier: MIT
 * mul: y = a * b, element by element
 *   a, b, y [N, width], each F32, F16 or BF16; computed in float, rounded once
 *
 * Work map: as in add.cl. y may be a. */
#ifndef TFM_VECTOR_CL
#include "vector.cl"
#endif

static void tfm_mul(__global const uchar *a, __global const uchar *b, __global uchar *y,
                    __global const struct tfm_step *s, __global const int *rows, uint part,
                    uint parts)
{
    const ulong n = (ulong)tfm_rows(s, rows) * s->width;
    const ulong vectors = n / TFM_VECTOR;
    const ulong end = tfm_end(vectors, part, parts);

    for (ulong v = tfm_first(vectors, part, parts); v < end; v += tfm_stride(parts))
        tfm_storev(tfm_loadv(a, v * TFM_VECTOR, s->type[0]) *
                       tfm_loadv(b, v * TFM_VECTOR, s->type[1]),
                   y, v * TFM_VECTOR, s->type[2]);
    if (part + 1 == parts && n % TFM_VECTOR != 0) {
        const uint left = (uint)(n % TFM_VECTOR);
        tfm_storev_tail(tfm_loadv_tail(a, vectors * TFM_VECTOR, left, s->type[0]) *
                            tfm_loadv_tail(b, vectors * TFM_VECTOR, left, s->type[1]),
                        y, vectors * TFM_VECTOR, left, s->type[2]);
    }
}

__kernel void tfm_run_mul(__global const uchar *a, __global const uchar *b, __global uchar *y,
                          __global const struct tfm_step *steps, uint index,
                          __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_mul(a + s->at[0], b + s->at[1], y + s->at[2], s, rows, get_global_id(0),
            get_global_size(0));
}
