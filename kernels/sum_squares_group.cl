/* SPDX-License-Identifier: MIT
 * sum_squares in the group shape; sum_squares.cl has formula and shapes.
 *
 * Work map: a group takes a run of blocks of 4096 elements; of a block, work-item i takes elements i, i + size,
 * i + 2 size ... One group sums the blocks' sums the same way. The order depends on the width and on the size of the
 * group. */
#ifndef TFM_GROUP_CL
#include "group.cl"
#endif

#define TFM_SUM_SQUARES_BLOCK 4096u

__kernel void tfm_run_sum_squares_group(__global const uchar *x, __global uchar *sums,
                                        __global const struct tfm_step *steps, uint index,
                                        __global const int *rows, __local float *cells)
{
    __global const struct tfm_step *s = steps + index;
    const uint group = (uint)get_group_id(0), groups = (uint)get_num_groups(0);
    const uint me = (uint)get_local_id(0), size = (uint)get_local_size(0), width = s->width;
    const uint blocks = (width + TFM_SUM_SQUARES_BLOCK - 1) / TFM_SUM_SQUARES_BLOCK;
    const uint end = (uint)tfm_share(blocks, group + 1, groups);
    __global const float *from = (__global const float *)(x + s->at[0]);

    for (uint b = (uint)tfm_share(blocks, group, groups); b < end && tfm_rows(s, rows) > 0; b++) {
        const uint first = b * TFM_SUM_SQUARES_BLOCK;
        const uint n = min(width - first, TFM_SUM_SQUARES_BLOCK);
        float squares = 0.0f;
        for (uint i = me; i < n; i += size)
            squares = fma(from[first + i], from[first + i], squares);
        const float sum = tfm_group_sum(squares, cells);
        if (me == 0)
            ((__global float *)(sums + s->at[1]))[b] = sum;
    }
}

/* sums [width] -> y [1] */
__kernel void tfm_run_sum_squares_blocks_group(__global const uchar *sums, __global uchar *y,
                                               __global const struct tfm_step *steps, uint index,
                                               __global const int *rows, __local float *cells)
{
    __global const struct tfm_step *s = steps + index;
    const uint me = (uint)get_local_id(0), size = (uint)get_local_size(0);
    /* in a run of no rows nobody has written the sums */
    const uint width = tfm_rows(s, rows) > 0 ? s->width : 0;
    __global const float *from = (__global const float *)(sums + s->at[0]);
    float sum = 0.0f;

    for (uint i = me; i < width; i += size)
        sum += from[i];
    sum = tfm_group_sum(sum, cells);
    if (me == 0 && get_group_id(0) == 0 && width > 0)
        *(__global float *)(y + s->at[1]) = sum;
}
