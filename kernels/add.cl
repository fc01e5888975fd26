/* SPDX-License-Identifier: MIT
 * add: y = a + b, element by element
 *   a, b, y [N, width], each F32, F16 or BF16; summed in float, rounded once
 *
 * Work map: the N * width elements are one line of vectors (vector.cl), shared out as tfm_first
 * in common.cl shows; the last part has also the elements behind the last whole vector. y may be a or b. */
#ifndef TFM_VECTOR_CL
#include "vector.cl"
#endif
#define TFM_ADD_CL

static void tfm_add(__global const uchar *a, __global const uchar *b, __global uchar *y,
                    __global const struct tfm_step *s, __global const int *rows, uint part,
                    uint parts)
{
    const ulong n = (ulong)tfm_rows(s, rows) * s->width;
    const ulong vectors = n / TFM_VECTOR;
    const ulong end = tfm_end(vectors, part, parts);

    for (ulong v = tfm_first(vectors, part, parts); v < end; v += tfm_stride(parts))
        tfm_storev(tfm_loadv(a, v * TFM_VECTOR, s->type[0]) +
                       tfm_loadv(b, v * TFM_VECTOR, s->type[1]),
                   y, v * TFM_VECTOR, s->type[2]);
    if (part + 1 == parts) {
        for (ulong i = vectors * TFM_VECTOR; i < n; i++)
            tfm_store(tfm_load(a, i, s->type[0]) + tfm_load(b, i, s->type[1]), y, i, s->type[2]);
    }
}

#ifndef TFM_PERSISTENT /* this function alone is a kernel, too */
__kernel void tfm_run_add(__global const uchar *a, __global const uchar *b, __global uchar *y,
                          __global const struct tfm_step *steps, uint index,
                          __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_add(a + s->at[0], b + s->at[1], y + s->at[2], s, rows, get_global_id(0),
            get_global_size(0));
}
#endif
