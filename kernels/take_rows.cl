/* SPDX-License-Identifier: MIT
 * take_rows: y[r] = x[out[r]], bit for bit
 *   x [N, row], y [R, row]; width = bytes of a row; out [R] from the run, each in [0, N)
 *
 * Work map, wide: a part takes a run of the R rows. Group: a unit is a word of a row, or a byte where words do
 * not fit. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif
#define TFM_TAKE_ROWS_CL

static void tfm_take_row(__global const uchar *from, __global uchar *to, ulong width)
{
    ulong i = 0;

    for (; i + 16 <= width; i += 16)
        vstore16(vload16(0, from + i), 0, to + i);
    for (; i < width; i++)
        to[i] = from[i];
}

static void tfm_take_rows(__global const uchar *x, __global uchar *y,
                          __global const struct tfm_step *s, __global const int *rows, uint part,
                          uint parts)
{
    __global const int *out = tfm_rows_out(rows);
    const ulong width = s->width;
    const int words = (((ulong)x | (ulong)y | width) & 3) == 0;
    const ulong units = !TFM_GROUPED ? 1 : words ? width / 4 : width; /* of a row */
    const ulong n = (ulong)(uint)rows[TFM_ROWS_N_OUT] * units, end = tfm_end(n, part, parts);

    for (ulong unit = tfm_first(n, part, parts); unit < end; unit += tfm_stride(parts)) {
        const ulong r = unit / units, i = unit % units;
        __global const uchar *from = x + (ulong)out[r] * width;
        __global uchar *to = y + r * width;
        if (!TFM_GROUPED)
            tfm_take_row(from, to, width);
        else if (words)
            ((__global uint *)to)[i] = ((__global const uint *)from)[i];
        else
            to[i] = from[i];
    }
}

#ifndef TFM_PERSISTENT /* this function alone is a kernel, too */
__kernel void tfm_run_take_rows(__global const uchar *x, __global uchar *y,
                                __global const struct tfm_step *steps, uint index,
                                __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_take_rows(x + s->at[0], y + s->at[1], s, rows, get_global_id(0), get_global_size(0));
}
#endif
