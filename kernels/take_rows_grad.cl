/* SPDX-License-Identifier: MIT
 * take_rows_grad: dx[n] = sum of dy[r] over the r with out[r] = n, in their order
 *   dy [R, width], dx [N, width] F32, F16 or BF16 of one type, summed in float; out [R] from the run
 *
 * Work map: a part takes a run of the N rows; group: a unit is 16 columns of a row. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif

/* Element i, or elements i..i+15, of the sum of the rows [first, end) of out that are n. */
static float16 tfm_take_rows_sum(__global const uchar *dy, __global const int *out, uint n,
                                 uint first, uint end, ulong width, ulong i, uint lanes, uint type)
{
    float16 sum = 0.0f;

    for (uint r = first; r < end; r++) {
        if ((uint)out[r] == n)
            sum += lanes == 16 ? tfm_load16(dy, r * width + i, type)
                               : tfm_load_tail(dy, r * width + i, lanes, type);
    }
    return sum;
}

__kernel void tfm_run_take_rows_grad(__global const uchar *dy, __global uchar *dx,
                                     __global const struct tfm_step *steps, uint index,
                                     __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint part = get_global_id(0), parts = get_global_size(0);
    const uint count = (uint)rows[TFM_ROWS_N], taken = (uint)rows[TFM_ROWS_N_OUT];
    const uint type = s->type[0];
    __global const int *out = tfm_rows_out(rows);
    const ulong width = s->width, pieces = TFM_GROUPED ? (width + 15) / 16 : 1;
    const ulong units = count * pieces, stop = tfm_end(units, part, parts);

    for (ulong unit = tfm_first(units, part, parts); unit < stop; unit += tfm_stride(parts)) {
        const uint n = (uint)(unit / pieces);
        uint first = 0, end = 0; /* where n stands in out, the first time and behind the last */
        for (uint r = taken; r-- > 0;) {
            if ((uint)out[r] == n) {
                first = r;
                end = max(end, r + 1);
            }
        }
        ulong i = unit % pieces * 16;
        const ulong behind = TFM_GROUPED ? min(i + 16, width) : width;
        for (; i + 16 <= behind; i += 16)
            tfm_store16(tfm_take_rows_sum(dy + s->at[0], out, n, first, end, width, i, 16, type),
                        dx + s->at[1], n * width + i, type);
        if (i < behind)
            tfm_store_tail(tfm_take_rows_sum(dy + s->at[0], out, n, first, end, width, i,
                                             (uint)(width - i), type),
                           dx + s->at[1], n * width + i, (uint)(width - i), type);
    }
}
