/* SPDX-License-Identifier: MIT
 * mul: y = a * b, element by element
 *   a, b, y [N, width], each F32, F16 or BF16; computed in float, rounded once
 *
 * Work map: as in add.cl. y may be a. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif

static void tfm_mul(__global const uchar *a, __global const uchar *b, __global uchar *y,
                    __global const struct tfm_step *s, __global const int *rows, uint part,
                    uint parts)
{
    const ulong n = (ulong)tfm_rows(s, rows) * s->width;
    const ulong vectors = n / 16;
    const ulong end = tfm_share(vectors, part + 1, parts);

    for (ulong v = tfm_share(vectors, part, parts); v < end; v++)
        tfm_store16(tfm_load16(a, v * 16, s->type[0]) * tfm_load16(b, v * 16, s->type[1]), y,
                    v * 16, s->type[2]);
    if (part + 1 == parts && n % 16 != 0) {
        const uint left = (uint)(n % 16);
        tfm_store_tail(tfm_load_tail(a, vectors * 16, left, s->type[0]) *
                           tfm_load_tail(b, vectors * 16, left, s->type[1]),
                       y, vectors * 16, left, s->type[2]);
    }
}

__kernel void tfm_run_mul(__global const uchar *a, __global const uchar *b, __global uchar *y,
                          __global const struct tfm_step *steps, uint index,
                          __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_mul(a + s->at[0], b + s->at[1], y + s->at[2], s, rows, get_group_id(0), get_num_groups(0));
}
