/* SPDX-License-Identifier: MIT
 * cast: y = x in another float type, rounded once to nearest even
 *   x, y [N, width], each F32, F16 or BF16
 *
 * Work map: as in add.cl. */
#ifndef TFM_VECTOR_CL
#include "vector.cl"
#endif

static void tfm_cast(__global const uchar *x, __global uchar *y, __global const struct tfm_step *s,
                     __global const int *rows, uint part, uint parts)
{
    const ulong n = (ulong)tfm_rows(s, rows) * s->width;
    const ulong vectors = n / TFM_VECTOR;
    const ulong end = tfm_end(vectors, part, parts);

    for (ulong v = tfm_first(vectors, part, parts); v < end; v += tfm_stride(parts))
        tfm_storev(tfm_loadv(x, v * TFM_VECTOR, s->type[0]), y, v * TFM_VECTOR, s->type[1]);
    if (part + 1 == parts) {
        for (ulong i = vectors * TFM_VECTOR; i < n; i++)
            tfm_store(tfm_load(x, i, s->type[0]), y, i, s->type[1]);
    }
}

__kernel void tfm_run_cast(__global const uchar *x, __global uchar *y,
                           __global const struct tfm_step *steps, uint index,
                           __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_cast(x + s->at[0], y + s->at[1], s, rows, get_global_id(0), get_global_size(0));
}
