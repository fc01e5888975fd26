/* SPDX-License-Identifier: MIT
 * The products of matrix.cl in the group shape; that file has formulas, shapes and dtypes.
 *
 * Work map: a unit is 4 m times as many columns as a group has work-items, one column each; a group takes a run
 * of units. Each sum runs over k from left to right in one work-item, whatever the size of the group. */
#ifndef TFM_GROUP_CL
#include "group.cl"
#endif
#define TFM_MATRIX_GROUP_CL

#define TFM_MATRIX_GROUP_ROWS 4u

/* a (m, k) is a[m a_m + k a_k], b (k, j) is element k b_k + j b_j of b_type. */
struct tfm_matrix_group {
    __global const float *a;
    __global const uchar *b, *bias;
    __global float *c;
    ulong a_m, a_k, b_k, b_j;
    uint b_type, bias_type;
    uint m, k, j; /* extents */
};

TFM_INLINE void tfm_matrix_group(const struct tfm_matrix_group *x, const int adds)
{
    const uint group = (uint)get_group_id(0), groups = (uint)get_num_groups(0);
    const uint size = (uint)get_local_size(0), me = (uint)get_local_id(0);
    const uint bands = (x->m + TFM_MATRIX_GROUP_ROWS - 1) / TFM_MATRIX_GROUP_ROWS;
    const uint strips = (x->j + size - 1) / size;
    const ulong units = (ulong)bands * strips, end = tfm_share(units, group + 1, groups);

    if (adds && x->k == 0)
        return; /* in a run of no rows nobody has written c yet */
    for (ulong unit = tfm_share(units, group, groups); unit < end; unit++) {
        const uint m = (uint)(unit % bands) * TFM_MATRIX_GROUP_ROWS;
        const uint j = (uint)(unit / bands) * size + me;
        const uint last = min(x->m - m, TFM_MATRIX_GROUP_ROWS) - 1;
        float sum[TFM_MATRIX_GROUP_ROWS];
        if (j >= x->j)
            continue;
        for (uint t = 0; t < TFM_MATRIX_GROUP_ROWS; t++)
            sum[t] = adds ? x->c[(ulong)(m + min(t, last)) * x->j + j] : 0.0f;
        for (uint k = 0; k < x->k; k++) {
            const float b = tfm_load(x->b, k * x->b_k + j * x->b_j, x->b_type);
            for (uint t = 0; t < TFM_MATRIX_GROUP_ROWS; t++)
                sum[t] = fma(x->a[(m + min(t, last)) * x->a_m + k * x->a_k], b, sum[t]);
        }
        const float bias =
            x->bias_type == TFM_STEP_NONE ? 0.0f : tfm_load(x->bias, j, x->bias_type);
        for (uint t = 0; t <= last; t++)
            x->c[(ulong)(m + t) * x->j + j] = sum[t] + bias;
    }
}

__kernel void tfm_run_linear_rows_group(__global const uchar *x, __global const uchar *weight,
                                        __global const uchar *bias, __global uchar *y,
                                        __global uchar *unused,
                                        __global const struct tfm_step *steps, uint index,
                                        __global const int *rows, __local float *cells)
{
    __global const struct tfm_step *s = steps + index;
    const struct tfm_matrix_group product = {(__global const float *)(x + s->at[0]),
                                             weight + s->at[1],
                                             bias + s->at[2],
                                             (__global float *)(y + s->at[3]),
                                             s->width,
                                             1,
                                             1,
                                             s->width,
                                             s->type[1],
                                             s->type[2],
                                             tfm_vectors(s, rows),
                                             s->width,
                                             s->out};
    (void)unused; /* the workspace of the wide shape */
    (void)cells;

    tfm_matrix_group(&product, 0);
}

__kernel void tfm_run_linear_grad_x_group(__global const uchar *weight, __global const uchar *dy,
                                          __global uchar *dx, __global uchar *unused,
                                          __global const struct tfm_step *steps, uint index,
                                          __global const int *rows, __local float *cells)
{
    __global const struct tfm_step *s = steps + index;
    const struct tfm_matrix_group product = {(__global const float *)(dy + s->at[1]),
                                             weight + s->at[0],
                                             weight,
                                             (__global float *)(dx + s->at[2]),
                                             s->out,
                                             1,
                                             s->width,
                                             1,
                                             s->type[0],
                                             TFM_STEP_NONE,
                                             tfm_vectors(s, rows),
                                             s->out,
                                             s->width};
    (void)unused;
    (void)cells;

    tfm_matrix_group(&product, 0);
}

__kernel void tfm_run_linear_grad_w_group(__global const uchar *x, __global const uchar *dy,
                                          __global uchar *dw, __global uchar *db,
                                          __global uchar *unused,
                                          __global const struct tfm_step *steps, uint index,
                                          __global const int *rows, __local float *cells)
{
    __global const struct tfm_step *s = steps + index;
    const uint stride = (uint)get_global_size(0), n = tfm_vectors(s, rows);
    __global const float *from = (__global const float *)(dy + s->at[1]);
    __global float *bias = (__global float *)(db + s->at[3]);
    const struct tfm_matrix_group product = {from,
                                             x + s->at[0],
                                             x,
                                             (__global float *)(dw + s->at[2]),
                                             1,
                                             s->out,
                                             s->width,
                                             1,
                                             TFM_STEP_F32,
                                             TFM_STEP_NONE,
                                             s->out,
                                             n,
                                             s->width};
    (void)unused;
    (void)cells;

    if (s->type[2] != TFM_STEP_NONE)
        tfm_matrix_group(&product, 1);
    for (uint o = (uint)get_global_id(0); o < s->out && s->type[3] != TFM_STEP_NONE && n > 0;
         o += stride) {
        float sum = bias[o];
        for (uint i = 0; i < n; i++)
            sum += from[(ulong)i * s->out + o];
        bias[o] = sum;
    }
}
