/* SPDX-License-Identifier: MIT
 * silu: y = x / (1 + exp(-x))   (Ramachandran et al., arXiv:1710.05941)
 *   x, y [N, width], each F32, F16 or BF16; computed in float, rounded once
 *
 * Work map: as in add.cl. y may be x. */
#ifndef TFM_GATES_CL
#include "gates.cl"
#endif

static void tfm_silu(__global const uchar *x, __global uchar *y, __global const struct tfm_step *s,
                     __global const int *rows, uint part, uint parts)
{
    const ulong n = (ulong)tfm_rows(s, rows) * s->width;
    const ulong vectors = n / 16;
    const ulong end = tfm_share(vectors, part + 1, parts);

    for (ulong v = tfm_share(vectors, part, parts); v < end; v++)
        tfm_store16(tfm_silu_of(tfm_load16(x, v * 16, s->type[0])), y, v * 16, s->type[1]);
    if (part + 1 == parts && n % 16 != 0) {
        const uint left = (uint)(n % 16);
        tfm_store_tail(tfm_silu_of(tfm_load_tail(x, vectors * 16, left, s->type[0])), y,
                       vectors * 16, left, s->type[1]);
    }
}

__kernel void tfm_run_silu(__global const uchar *x, __global uchar *y,
                           __global const struct tfm_step *steps, uint index,
                           __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_silu(x + s->at[0], y + s->at[1], s, rows, get_group_id(0), get_num_groups(0));
}
