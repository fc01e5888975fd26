/* SPDX-License-Identifier: MIT
 * gqa_attention for a long context and few rows: attend_split leaves the partial result of every
 * split, merge adds them up. gqa_attention.cl has the formula and the order of the sums, which is
 * the same.
 *   q, y [N, H, d] F32; partial [N H][splits][wide + 16] F32: sum, then most and mass of a split
 *
 * Work map: unit u of attend_split is split u % splits of unit u / splits of attend, and goes to
 * part u % parts; a part of merge takes a run of the N H results. */
#ifndef TFM_ATTENTION_CL
#include "gqa_attention.cl"
#endif

/* Splits of the longest sequence of this run, at most s->splits. */
static uint tfm_attention_splits(__global const struct tfm_step *s, __global const int *rows)
{
    uint most = 0;

    for (uint n = 0; n < (uint)rows[TFM_ROWS_N_SEQ]; n++)
        most = max(most, (uint)tfm_rows_past(rows)[n] + tfm_sequence_end(rows, n) -
                             (uint)tfm_rows_start(rows)[n]);
    return min((most + TFM_ATTENTION_SPLIT - 1) / TFM_ATTENTION_SPLIT, s->splits);
}

static void tfm_attention_attend_split(struct tfm_attention *a, __global const float *q,
                                       __global float *partial, __global const struct tfm_step *s,
                                       __global const int *rows, uint part, uint parts)
{
    const uint splits = tfm_attention_splits(s, rows);
    uint first_row = 0;
    int first;

    if (splits == 0)
        return;
    for (uint u = part; (first = tfm_attention_open(a, u / splits, q, s, rows, &first_row)) >= 0;
         u += parts) {
        const uint end = a->end[a->n - 1], cell = u % splits * TFM_ATTENTION_SPLIT;
        if (cell >= end || cell + TFM_ATTENTION_SPLIT <= a->begin[0])
            continue;
        tfm_attention_split(a, cell, min(end, cell + TFM_ATTENTION_SPLIT), s);
        for (uint j = 0; j < a->n; j++) {
            const ulong place = tfm_attention_place(a, first_row, (uint)first, j, s);
            __global float *to = partial + (place * s->splits + u % splits) * (a->wide + 16);
            for (uint i = 0; i < a->wide; i += 16)
                vstore16(vload16(0, a->sum + j * a->wide + i), 0, to + i);
            to[a->wide] = a->most[j];
            to[a->wide + 1] = a->mass[j];
        }
    }
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
            vstore16((float16)(0.0f), 0, total + i);
        const uint last = min(s->splits - 1, (a.end[0] - 1) / TFM_ATTENTION_SPLIT);
        for (uint split = a.begin[0] / TFM_ATTENTION_SPLIT; split <= last; split++) {
            __global const float *from = partial + ((ulong)h * s->splits + split) * (wide + 16);
            tfm_attention_merge(from[wide], from[wide + 1], from, &most, &mass, total, wide);
        }
        tfm_attention_finish(total, mass, y + (ulong)h * s->head_dim, s->head_dim);
    }
}

__kernel void tfm_run_gqa_attention_split(__global const uchar *q, __global uchar *partial,
                                          __global const uchar *k_cache,
                                          __global const uchar *v_cache, __global uchar *scratch,
                                          __global const uchar *bias, __global const uchar *bucket,
                                          __global const struct tfm_step *steps, uint index,
                                          __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    struct tfm_attention a;

    tfm_attention_start(&a, k_cache, v_cache, scratch, bias, bucket, s);
    tfm_attention_attend_split(&a, (__global const float *)(q + s->at[0]),
                               (__global float *)(partial + s->at[1]), s, rows, get_group_id(0),
                               get_num_groups(0));
}

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
