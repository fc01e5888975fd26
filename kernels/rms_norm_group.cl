/* SPDX-License-Identifier: MIT
 * rms_norm in the group shape; rms_norm.cl has formula, shapes and dtypes.
 *
 * Work map: a group takes a run of rows; of a row, work-item i takes elements i, i + size, i + 2 size ...
 * The order of the sum depends on the width and on the size of the group. y may be x: an element is
 * read for the last time and written by one work-item. */
#ifndef TFM_GROUP_CL
#include "group.cl"
#endif

static void tfm_rms_norm_group(__global const uchar *x, __global const uchar *gamma,
                               __global uchar *y, __global const struct tfm_step *s,
                               __global const int *rows, __local float *cells)
{
    const uint group = (uint)get_group_id(0), groups = (uint)get_num_groups(0);
    const uint n = tfm_vectors(s, rows), end = (uint)tfm_share(n, group + 1, groups);
    const uint me = (uint)get_local_id(0), size = (uint)get_local_size(0), width = s->width;

    for (uint row = (uint)tfm_share(n, group, groups); row < end; row++) {
        const ulong first = (ulong)row * width;
        float squares = 0.0f;
        for (uint i = me; i < width; i += size) {
            const float v = tfm_load(x, first + i, s->type[0]);
            squares = fma(v, v, squares);
        }
        const float mean = tfm_group_sum(squares, cells) / (float)width;
        const float factor = 1.0f / sqrt(mean + s->eps);
        for (uint i = me; i < width; i += size)
            tfm_store(tfm_load(x, first + i, s->type[0]) * factor * tfm_load(gamma, i, s->type[1]),
                      y, first + i, s->type[2]);
    }
}

__kernel void tfm_run_rms_norm_group(__global const uchar *x, __global const uchar *gamma,
                                     __global uchar *y, __global const struct tfm_step *steps,
                                     uint index, __global const int *rows, __local float *cells)
{
    __global const struct tfm_step *s = steps + index;

    tfm_rms_norm_group(x + s->at[0], gamma + s->at[1], y + s->at[2], s, rows, cells);
}
