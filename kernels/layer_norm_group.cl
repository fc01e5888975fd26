/* SPDX-License-Identifier: MIT
 * layer_norm in the group shape; layer_norm.cl has formula, shapes, dtypes and why there are two passes.
 *
 * Work map: as in rms_norm_group.cl. y may be x. */
#ifndef TFM_GROUP_CL
#include "group.cl"
#endif

static void tfm_layer_norm_group(__global const uchar *x, __global const uchar *gamma,
                                 __global const uchar *beta, __global uchar *y,
                                 __global const struct tfm_step *s, __global const int *rows,
                                 __local float *cells)
{
    const uint group = (uint)get_group_id(0), groups = (uint)get_num_groups(0);
    const uint n = tfm_vectors(s, rows), end = (uint)tfm_share(n, group + 1, groups);
    const uint me = (uint)get_local_id(0), size = (uint)get_local_size(0), width = s->width;
    const uint type = s->type[0], shift = s->type[2];

    for (uint row = (uint)tfm_share(n, group, groups); row < end; row++) {
        const ulong first = (ulong)row * width;
        float sum = 0.0f, rest = 0.0f, squares = 0.0f;
        for (uint i = me; i < width; i += size)
            sum += tfm_load(x, first + i, type);
        const float mean = tfm_group_sum(sum, cells) / (float)width;
        for (uint i = me; i < width; i += size) {
            const float d = tfm_load(x, first + i, type) - mean;
            rest += d;
            squares = fma(d, d, squares);
        }
        rest = tfm_group_sum(rest, cells) / (float)width;
        squares = tfm_group_sum(squares, cells) / (float)width;
        const float factor = 1.0f / sqrt(fmax(squares - rest * rest, 0.0f) + s->eps);
        for (uint i = me; i < width; i += size) {
            const float b = shift == TFM_STEP_NONE ? 0.0f : tfm_load(beta, i, shift);
            const float v = (tfm_load(x, first + i, type) - mean - rest) * factor;
            tfm_store(fma(v, tfm_load(gamma, i, s->type[1]), b), y, first + i, s->type[3]);
        }
    }
}

__kernel void tfm_run_layer_norm_group(__global const uchar *x, __global const uchar *gamma,
                                       __global const uchar *beta, __global uchar *y,
                                       __global const struct tfm_step *steps, uint index,
                                       __global const int *rows, __local float *cells)
{
    __global const struct tfm_step *s = steps + index;

    tfm_layer_norm_group(x + s->at[0], gamma + s->at[1], beta + s->at[2], y + s->at[3], s, rows,
                         cells);
}
