/* SPDX-License-Identifier: MIT
 * cross_entropy and its gradient in the group shape; cross_entropy.cl has formulas, shapes and dtypes.
 *
 * Work map of partial: a unit is 4 rows times the classes of a chunk, of which each work-item takes every
 * size-th; what they have is put together through local memory. Slopes: a unit is 4 rows times as many classes as
 * a group has work-items. */
#ifndef TFM_MATRIX_GROUP_CL
#include "matrix_group.cl"
#endif

/* Logits of one class for rows m to m + last, those past it repeated. */
static void tfm_cross_entropy_group_logits(__global const float *x, __global const uchar *weight,
                                           uint type, uint width, uint m, uint last, uint class,
                                           float *logit)
{
    for (uint t = 0; t < TFM_MATRIX_GROUP_ROWS; t++)
        logit[t] = 0.0f;
    for (uint k = 0; k < width; k++) {
        const float w = tfm_load(weight, (ulong) class * width + k, type);
        for (uint t = 0; t < TFM_MATRIX_GROUP_ROWS; t++)
            logit[t] = fma(x[(ulong)(m + min(t, last)) * width + k], w, logit[t]);
    }
}

/* As tfm_cross_entropy_bend of the wide shape; softcap 0: nothing is done. */
static float tfm_cross_entropy_group_bend(float *logit, float softcap)
{
    if (softcap <= 0.0f)
        return 1.0f;
    const float z = *logit / softcap, e = exp(-2.0f * fabs(z));
    *logit = softcap * tanh(z);
    return 4.0f * e / ((1.0f + e) * (1.0f + e));
}

__kernel void tfm_run_cross_entropy_group(__global const uchar *x, __global const uchar *weight,
                                          __global const uchar *targets, __global uchar *partial,
                                          __global uchar *logits, __global uchar *unused,
                                          __global const struct tfm_step *steps, uint index,
                                          __global const int *rows, __local float *cells)
{
    __global const struct tfm_step *s = steps + index;
    const uint group = (uint)get_group_id(0), groups = (uint)get_num_groups(0);
    const uint size = (uint)get_local_size(0), me = (uint)get_local_id(0);
    const uint n = tfm_chunk_rows(s, rows);
    const uint bands = (n + TFM_MATRIX_GROUP_ROWS - 1) / TFM_MATRIX_GROUP_ROWS;
    const uint chunks = (s->out + s->columns - 1) / s->columns;
    const ulong units = (ulong)bands * chunks, end = tfm_share(units, group + 1, groups);
    __global const int *target = (__global const int *)(targets + s->at[2]) + s->first;
    __global float *kept = (__global float *)(logits + s->at[4]);
    (void)unused; /* the workspace of the wide shape */

    for (ulong unit = tfm_share(units, group, groups); unit < end; unit++) {
        const uint m = (uint)(unit % bands) * TFM_MATRIX_GROUP_ROWS, chunk = (uint)(unit / bands);
        const uint last = min(n - m, TFM_MATRIX_GROUP_ROWS) - 1;
        const uint stop = min((chunk + 1) * s->columns, s->out);
        float most[TFM_MATRIX_GROUP_ROWS], mass[TFM_MATRIX_GROUP_ROWS];
        float picked[TFM_MATRIX_GROUP_ROWS], logit[TFM_MATRIX_GROUP_ROWS];
        for (uint t = 0; t < TFM_MATRIX_GROUP_ROWS; t++) {
            most[t] = -FLT_MAX;
            mass[t] = picked[t] = 0.0f;
        }
        for (uint class = chunk * s->columns + me; class < stop; class += size) {
            tfm_cross_entropy_group_logits(
                (__global const float *)(x + s->at[0]) + (ulong)s->first * s->width,
                weight + s->at[1], s->type[1], s->width, m, last, class, logit);
            for (uint t = 0; t < TFM_MATRIX_GROUP_ROWS; t++) {
                const float before = most[t];
                if (s->type[4] != TFM_STEP_NONE && t <= last)
                    kept[(ulong)(m + t) * TFM_LOGITS_STRIDE(s->out) + class] = logit[t];
                tfm_cross_entropy_group_bend(&logit[t], s->softcap);
                most[t] = fmax(before, logit[t]);
                mass[t] = mass[t] * exp(before - most[t]) + exp(logit[t] - most[t]);
                if (target[m + min(t, last)] == (int)class)
                    picked[t] = logit[t];
            }
        }
        for (uint t = 0; t <= last; t++) {
            __global float *to =
                (__global float *)(partial + s->at[3]) + ((ulong)(m + t) * chunks + chunk) * 4;
            const float all = tfm_group_max(most[t], cells);
            const float sum = tfm_group_sum(mass[t] * exp(most[t] - all), cells);
            const float own = tfm_group_sum(picked[t], cells);
            if (me == 0) {
                to[0] = all;
                to[1] = sum;
                to[2] = own;
            }
        }
    }
}

__kernel void tfm_run_cross_entropy_slopes_group(__global const uchar *targets,
                                                 __global const uchar *lse,
                                                 __global const uchar *dloss,
                                                 __global const uchar *logits,
                                                 __global uchar *slopes, __global uchar *unused,
                                                 __global const struct tfm_step *steps, uint index,
                                                 __global const int *rows, __local float *cells)
{
    __global const struct tfm_step *s = steps + index;
    __global const int *target = (__global const int *)(targets + s->at[0]) + s->first;
    __global const float *base = (__global const float *)(lse + s->at[1]) + s->first;
    __global const float *up = (__global const float *)(dloss + s->at[2]) + s->first;
    const uint group = (uint)get_group_id(0), groups = (uint)get_num_groups(0);
    const uint size = (uint)get_local_size(0), me = (uint)get_local_id(0);
    const uint n = tfm_chunk_rows(s, rows), stride = TFM_LOGITS_STRIDE(s->out);
    const uint bands = (n + TFM_MATRIX_GROUP_ROWS - 1) / TFM_MATRIX_GROUP_ROWS;
    const uint strips = (s->out + size - 1) / size;
    const ulong units = (ulong)bands * strips, end = tfm_share(units, group + 1, groups);
    (void)unused; /* the slopes of the wide shape as products of bf16 read them */
    (void)cells;

    for (ulong unit = tfm_share(units, group, groups); unit < end; unit++) {
        const uint m = (uint)(unit % bands) * TFM_MATRIX_GROUP_ROWS;
        const uint class = (uint)(unit / bands) * size + me;
        if (class >= s->out)
            continue;
        for (uint row = m; row < min(n, m + TFM_MATRIX_GROUP_ROWS); row++) {
            const ulong at = (ulong)row * stride + class;
            float logit = ((__global const float *)(logits + s->at[3]))[at];
            const float slope = up[row] * tfm_cross_entropy_group_bend(&logit, s->softcap);
            const float p = exp(logit - base[row]) - (target[row] == (int)class ? 1.0f : 0.0f);
            ((__global float *)(slopes + s->at[4]))[at] = target[row] < 0 ? 0.0f : slope * p;
        }
    }
}

__kernel void tfm_run_cross_entropy_grad_w_group(__global const uchar *g, __global const uchar *x,
                                                 __global uchar *dweight, __global uchar *unused,
                                                 __global const struct tfm_step *steps, uint index,
                                                 __global const int *rows, __local float *cells)
{
    __global const struct tfm_step *s = steps + index;
    const struct tfm_matrix_group product = {(__global const float *)(g + s->at[0]),
                                             x + s->at[1] + (ulong)s->first * s->width * 4,
                                             x,
                                             (__global float *)(dweight + s->at[2]),
                                             1,
                                             TFM_LOGITS_STRIDE(s->out),
                                             s->width,
                                             1,
                                             TFM_STEP_F32,
                                             TFM_STEP_NONE,
                                             s->out,
                                             tfm_chunk_rows(s, rows),
                                             s->width};
    (void)unused;
    (void)cells;

    tfm_matrix_group(&product, 1);
}

__kernel void tfm_run_cross_entropy_grad_x_group(__global const uchar *g,
                                                 __global const uchar *weight, __global uchar *dx,
                                                 __global uchar *unused,
                                                 __global const struct tfm_step *steps, uint index,
                                                 __global const int *rows, __local float *cells)
{
    __global const struct tfm_step *s = steps + index;
    const struct tfm_matrix_group product = {(__global const float *)(g + s->at[0]),
                                             weight + s->at[1],
                                             weight,
                                             (__global float *)(dx + s->at[2]) +
                                                 (ulong)s->first * s->width,
                                             TFM_LOGITS_STRIDE(s->out),
                                             1,
                                             s->width,
                                             1,
                                             s->type[1],
                                             TFM_STEP_NONE,
                                             tfm_chunk_rows(s, rows),
                                             s->out,
                                             s->width};
    (void)unused;
    (void)cells;

    tfm_matrix_group(&product, 0);
}
