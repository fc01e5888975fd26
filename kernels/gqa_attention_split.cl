/* SPDX-License-Identifier: MIT
 * gqa_attention, splits: what becomes of the sums over TFM_ATTENTION_SPLIT cells. attend adds them up at
 * once, or, for a long context and few rows, keeps each for the kernel merge. The order is the same.
 *   y [N, H, d] F32; partial [N H][splits][wide + 16] F32: sum, then most and mass of a split
 *
 * Work map: a part of merge takes a run of the N H results. */
#ifndef TFM_ATTENTION_TILE_CL
#include "gqa_attention_tile.cl"
#endif
#define TFM_ATTENTION_SPLIT_CL

/* Adds a split (most, mass, sum) to what came before it (all_most, all_mass, total). */
static void tfm_attention_merge(float most, float mass, __global const float *sum, float *all_most,
                                float *all_mass, __global float *total, uint wide)
{
    const float now = fmax(*all_most, most), base = now == -INFINITY ? 0.0f : now;
    const float old = exp(*all_most - base), new = exp(most - base);

    for (uint i = 0; i < wide; i += 16)
        tfm_put16(fma(vload16(0, total + i), (float16)(old), vload16(0, sum + i) * new), 0,
                  total + i);
    *all_mass = fma(*all_mass, old, mass * new);
    *all_most = now;
}

/* y = total / mass; a query that saw nothing gets 0. */
static void tfm_attention_finish(__global const float *total, float mass, __global float *y, uint d)
{
    const float factor = mass == 0.0f ? 0.0f : 1.0f / mass;
    uint i = 0;

    for (; i + 16 <= d; i += 16)
        tfm_put16(vload16(0, total + i) * factor, 0, y + i);
    for (; i < d; i++)
        y[i] = total[i] * factor;
}

/* The partial result of query j over split number `split`, `place` = row times H plus head. */
static void tfm_attention_keep(const struct tfm_attention *a, uint j, ulong place, uint split,
                               __global float *partial, __global const struct tfm_step *s)
{
    __global float *to = partial + (place * s->splits + split) * (a->wide + 16);

    for (uint i = 0; i < a->wide; i += 16)
        tfm_put16(vload16(0, a->sum + j * a->wide + i), 0, to + i);
    to[a->wide] = a->most[j];
    to[a->wide + 1] = a->mass[j];
}

static void tfm_attention_merge_splits(__global const float *partial, __global float *y,
                                       __global float *scratch, __global const struct tfm_step *s,
                                       __global const int *rows, uint part, uint parts)
{
    const uint heads = tfm_rows(s, rows) * s->heads, end = (uint)tfm_share(heads, part + 1, parts);
    const uint wide = (s->head_dim + 15) & ~15u;
    __global float *total = scratch + (ulong)part * s->scratch;
    struct tfm_attention a;
    uint n = 0;

    for (uint h = (uint)tfm_share(heads, part, parts); h < end; h++) {
        const uint row = h / s->heads;
        while (n < (uint)rows[TFM_ROWS_N_SEQ] && tfm_sequence_end(rows, n) <= row)
            n++;
        if (n == (uint)rows[TFM_ROWS_N_SEQ])
            return;
        const uint begin = (uint)tfm_rows_start(rows)[n];
        const uint past = s->cells ? (uint)tfm_rows_past(rows)[n] : 0;
        tfm_attention_look(&a, 0, past + (row - begin), past + tfm_sequence_end(rows, n) - begin,
                           s);
        float most = -INFINITY, mass = 0.0f;
        for (uint i = 0; i < wide; i += 16)
            tfm_put16((float16)(0.0f), 0, total + i);
        const uint last = min(s->splits - 1, (a.end[0] - 1) / TFM_ATTENTION_SPLIT);
        for (uint split = a.begin[0] / TFM_ATTENTION_SPLIT; split <= last; split++) {
            __global const float *from = partial + ((ulong)h * s->splits + split) * (wide + 16);
            tfm_attention_merge(from[wide], from[wide + 1], from, &most, &mass, total, wide);
        }
        tfm_attention_finish(total, mass, y + (ulong)h * s->head_dim, s->head_dim);
    }
}

#ifndef TFM_PERSISTENT
__kernel void tfm_run_gqa_attention_merge(__global const uchar *partial, __global uchar *y,
                                          __global uchar *scratch,
                                          __global const struct tfm_step *steps, uint index,
                                          __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_attention_merge_splits(
        (__global const float *)(partial + s->at[0]), (__global float *)(y + s->at[1]),
        (__global float *)(scratch + s->at[2]), s, rows, get_group_id(0), get_num_groups(0));
}
#endif
