/* SPDX-License-Identifier: MIT
 * take_rows: y[r] = x[out[r]], bit for bit
 *   x [N, row], y [R, row]; width = bytes of a row; out [R] from the run, each in [0, N)
 *
 * Work map: a part takes a run of the R rows. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif
#define TFM_TAKE_ROWS_CL

static void tfm_take_rows(__global const uchar *x, __global uchar *y,
                          __global const struct tfm_step *s, __global const int *rows, uint part,
                          uint parts)
{
    const uint n = (uint)rows[TFM_ROWS_N_OUT], end = (uint)tfm_share(n, part + 1, parts);
    __global const int *out = tfm_rows_out(rows);
    const ulong width = s->width;

    for (uint r = (uint)tfm_share(n, part, parts); r < end; r++) {
        __global const uchar *from = x + (ulong)out[r] * width;
        __global uchar *to = y + r * width;
        ulong i = 0;
        for (; i + 16 <= width; i += 16)
            vstore16(vload16(0, from + i), 0, to + i);
        for (; i < width; i++)
            to[i] = from[i];
    }
}

#ifndef TFM_PERSISTENT /* this function alone is a kernel, too */
__kernel void tfm_run_take_rows(__global const uchar *x, __global uchar *y,
                                __global const struct tfm_step *steps, uint index,
                                __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_take_rows(x + s->at[0], y + s->at[1], s, rows, get_group_id(0), get_num_groups(0));
}
#endif
