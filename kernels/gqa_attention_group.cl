/* SPDX-License-Identifier: MIT
 * gqa_attention in the group shape; gqa_attention.cl has formula, shapes, dtypes and what is general.
 *
 * A context is cut into splits of TFM_ATTENTION_SPLIT cells from cell 0. Of a split, work-item i has the
 * scores of cells i, i + size ...; they wait in local memory while it sums elements i, i + size ... of
 * p v, so that neighbours read neighbouring values. Splits are added from left to right:
 *
 *   attend   a unit is a row and a head, over all of its splits; the sum so far is in y itself
 *   split    a unit is a row, a head and a split; its sum is kept in `partial`
 *   merge    adds up the splits of a row and a head, with the same bits as attend
 *
 *   partial [N H][splits][wide + 16] F32: sum, then most and mass; wide is d in whole 16s
 *
 * Work map: unit u goes to group u % groups; append gives a group a run of rows. */
#ifndef TFM_GROUP_CL
#include "group.cl"
#endif

#ifndef TFM_ATTENTION_SPLIT
#define TFM_ATTENTION_SPLIT 256
#endif
#ifndef TFM_ATTENTION_GENERAL
#define TFM_ATTENTION_GENERAL 0
#endif

/* One row and head: what it reads and the cells [begin, end) that it sees. */
struct tfm_attention_unit {
    __global const float *q;
    __global const uchar *k, *v;
    __global const float *bias; /* general */
    __global const int *bucket;
    ulong at; /* element of k and v where cell 0 of the head begins */
    uint own, begin, end, head;
};

/* The sequence of a row; `row` < N. */
static uint tfm_attention_sequence(__global const int *rows, uint row)
{
    uint n = 0;

    while (n + 1 < (uint)rows[TFM_ROWS_N_SEQ] && tfm_sequence_end(rows, n) <= row)
        n++;
    return n;
}

/* Place of the row in its sequence, and what it sees of it. */
static void tfm_attention_open(struct tfm_attention_unit *a, uint row, uint head,
                               __global const struct tfm_step *s, __global const int *rows)
{
    const uint n = tfm_attention_sequence(rows, row), begin = (uint)tfm_rows_start(rows)[n];
    const uint past = s->cells ? (uint)tfm_rows_past(rows)[n] : 0;
    const uint all = past + tfm_sequence_end(rows, n) - begin, limit = s->cells ? s->cells : all;
    const uint group = head / (s->heads / s->kv_heads), width = s->kv_heads * s->head_dim;

    a->own = min(past + (row - begin), limit - 1);
    a->begin = 0;
    a->end = a->own + 1;
    a->head = head;
    a->at =
        s->cells ? (ulong)(uint)tfm_rows_slot(rows)[n] * s->cells * width : (ulong)begin * width;
    a->at += group * s->head_dim;
    if (TFM_ATTENTION_GENERAL) {
        const uint window = s->window;
        if (s->bidirectional)
            a->end = min(all, limit);
        if (window) {
            a->begin = a->own + 1 > window ? a->own + 1 - window : 0;
            a->end = window < a->end - a->own ? a->own + window : a->end;
        }
    }
}

TFM_INLINE float tfm_attention_dot(__global const float *q, __global const uchar *k, ulong at,
                                   const uint type, uint d)
{
    float dot = 0.0f;

    for (uint i = 0; i < d; i++)
        dot = fma(q[i], tfm_load(k, at + i, type), dot);
    return dot;
}

static float tfm_attention_score(const struct tfm_attention_unit *a, uint cell,
                                 __global const struct tfm_step *s)
{
    const ulong at = a->at + (ulong)cell * s->kv_heads * s->head_dim;
    float score = s->type[2] == TFM_STEP_F16
                      ? tfm_attention_dot(a->q, a->k, at, TFM_STEP_F16, s->head_dim)
                      : tfm_attention_dot(a->q, a->k, at, TFM_STEP_F32, s->head_dim);

    score *= s->scale;
    if (TFM_ATTENTION_GENERAL) {
        if (s->softcap > 0.0f)
            score = s->softcap * tanh(score / s->softcap);
        if (a->bias) {
            const int span = (int)s->span;
            const int bucket = a->bucket[clamp((int)cell - (int)a->own, -span, span) + span];
            score += a->bias[(ulong)bucket * s->heads + a->head];
        }
    }
    return score;
}

/* Element i of p v over cells [first, end). */
TFM_INLINE float tfm_attention_value(const struct tfm_attention_unit *a, const uint type,
                                     uint first, uint end, uint i,
                                     __global const struct tfm_step *s, __local const float *p)
{
    const uint stride = s->kv_heads * s->head_dim;
    float sum = 0.0f;

    for (uint cell = first; cell < end; cell++) {
        const float weight = p[cell - first];
        if (TFM_ATTENTION_GENERAL && weight == 0.0f)
            continue; /* as in the wide shape */
        sum = fma(weight, tfm_load(a->v, a->at + (ulong)cell * stride + i, type), sum);
    }
    return sum;
}

/* Cells [first, end) of one split: p [SPLIT] gets their weights, not yet divided, *most the largest score;
 * returns the sum of the weights. */
static float tfm_attention_weigh(const struct tfm_attention_unit *a, uint first, uint end,
                                 __global const struct tfm_step *s, __local float *p,
                                 __local float *cells, float *most)
{
    const uint me = (uint)get_local_id(0), size = (uint)get_local_size(0);
    float best = -INFINITY, mass = 0.0f;

    for (uint cell = first + me; cell < end; cell += size) {
        const float score = tfm_attention_score(a, cell, s);
        p[cell - first] = score;
        best = fmax(best, score);
    }
    best = tfm_group_max(best, cells);
    const float base = best == -INFINITY ? 0.0f : best;
    for (uint cell = first + me; cell < end; cell += size) {
        const float weight = exp(p[cell - first] - base);
        p[cell - first] = weight;
        mass += weight;
    }
    *most = best;
    return tfm_group_sum(mass, cells); /* and its barriers: p is complete */
}

/* Sum of element i over the cells that were weighed. */
static float tfm_attention_gather(const struct tfm_attention_unit *a, uint first, uint end, uint i,
                                  __global const struct tfm_step *s, __local const float *p)
{
    return s->type[3] == TFM_STEP_F16 ? tfm_attention_value(a, TFM_STEP_F16, first, end, i, s, p)
                                      : tfm_attention_value(a, TFM_STEP_F32, first, end, i, s, p);
}

/* How much what came before and what comes now count in their sum. */
static float2 tfm_attention_shares(float most, float mass, float *all_most, float *all_mass)
{
    const float now = fmax(*all_most, most), base = now == -INFINITY ? 0.0f : now;
    const float2 shares = (float2)(exp(*all_most - base), exp(most - base));

    *all_mass = fma(*all_mass, shares.x, mass * shares.y);
    *all_most = now;
    return shares;
}

/* lse 0 = not asked for. */
static void tfm_attention_whole(const struct tfm_attention_unit *a, __global float *y,
                                __global float *lse, __global const struct tfm_step *s,
                                __local float *p, __local float *cells)
{
    const uint me = (uint)get_local_id(0), size = (uint)get_local_size(0), d = s->head_dim;
    float all_most = -INFINITY, all_mass = 0.0f;

    for (uint i = me; i < d; i += size)
        y[i] = 0.0f;
    for (uint split = a->begin / TFM_ATTENTION_SPLIT; split * TFM_ATTENTION_SPLIT < a->end;
         split++) {
        const uint first = max(a->begin, split * TFM_ATTENTION_SPLIT);
        const uint end = min(a->end, (split + 1) * TFM_ATTENTION_SPLIT);
        float most;
        const float mass = tfm_attention_weigh(a, first, end, s, p, cells, &most);
        const float2 shares = tfm_attention_shares(most, mass, &all_most, &all_mass);
        for (uint i = me; i < d; i += size)
            y[i] = fma(y[i], shares.x, tfm_attention_gather(a, first, end, i, s, p) * shares.y);
        barrier(CLK_LOCAL_MEM_FENCE); /* before p is written again */
    }
    for (uint i = me; i < d; i += size)
        y[i] *= all_mass == 0.0f ? 0.0f : 1.0f / all_mass;
    if (lse && me == 0)
        *lse = all_most + log(all_mass);
}

static void tfm_attention_part(const struct tfm_attention_unit *a, uint split,
                               __global float *partial, __global const struct tfm_step *s,
                               __local float *p, __local float *cells)
{
    const uint me = (uint)get_local_id(0), size = (uint)get_local_size(0);
    const uint wide = (s->head_dim + 15) & ~15u;
    const uint first = max(a->begin, split * TFM_ATTENTION_SPLIT);
    const uint end = min(a->end, (split + 1) * TFM_ATTENTION_SPLIT);
    float most;

    if (first >= end) /* for the whole group */
        return;
    const float mass = tfm_attention_weigh(a, first, end, s, p, cells, &most);
    for (uint i = me; i < s->head_dim; i += size)
        partial[i] = tfm_attention_gather(a, first, end, i, s, p);
    if (me == 0) {
        partial[wide] = most;
        partial[wide + 1] = mass;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

__kernel void tfm_run_gqa_attention_group(__global const uchar *q, __global uchar *y,
                                          __global const uchar *k_cache,
                                          __global const uchar *v_cache, __global uchar *unused,
                                          __global const uchar *bias, __global const uchar *bucket,
                                          __global uchar *lse,
                                          __global const struct tfm_step *steps, uint index,
                                          __global const int *rows, __local float *cells)
{
    __global const struct tfm_step *s = steps + index;
    (void)unused;                                 /* the workspace of the wide shape */
    __local float *p = cells + get_local_size(0); /* [SPLIT] */
    const uint splits = s->split ? min(tfm_longest(rows, TFM_ATTENTION_SPLIT), s->splits) : 1;
    const uint units = tfm_rows(s, rows) * s->heads * splits, wide = (s->head_dim + 15) & ~15u;
    __global float *to = (__global float *)(y + s->at[1]);
    struct tfm_attention_unit a;

    a.k = k_cache + s->at[2];
    a.v = v_cache + s->at[3];
    a.bias = 0;
    a.bucket = 0;
    if (s->type[5] != TFM_STEP_NONE) {
        a.bias = (__global const float *)(bias + s->at[5]);
        a.bucket = (__global const int *)(bucket + s->at[6]);
    }
    for (uint u = (uint)get_group_id(0); u < units; u += (uint)get_num_groups(0)) {
        const ulong place = u / splits; /* row times H plus head */
        tfm_attention_open(&a, (uint)(place / s->heads), (uint)(place % s->heads), s, rows);
        a.q = (__global const float *)(q + s->at[0]) + place * s->head_dim;
        if (s->split)
            tfm_attention_part(&a, u % splits, to + (place * s->splits + u % splits) * (wide + 16),
                               s, p, cells);
        else
            tfm_attention_whole(
                &a, to + place * s->head_dim,
                s->type[7] == TFM_STEP_NONE ? 0 : (__global float *)(lse + s->at[7]) + place, s, p,
                cells);
    }
}

__kernel void tfm_run_gqa_attention_group_merge(__global const uchar *partial, __global uchar *y,
                                                __global uchar *unused,
                                                __global const struct tfm_step *steps, uint index,
                                                __global const int *rows, __local float *none)
{
    __global const struct tfm_step *s = steps + index;
    (void)unused;
    (void)none; /* the local memory of attend */
    const uint units = tfm_rows(s, rows) * s->heads, wide = (s->head_dim + 15) & ~15u;
    const uint me = (uint)get_local_id(0), size = (uint)get_local_size(0);
    struct tfm_attention_unit a;

    for (uint u = (uint)get_group_id(0); u < units; u += (uint)get_num_groups(0)) {
        __global const float *from =
            (__global const float *)(partial + s->at[0]) + (ulong)u * s->splits * (wide + 16);
        __global float *to = (__global float *)(y + s->at[1]) + (ulong)u * s->head_dim;
        tfm_attention_open(&a, u / s->heads, u % s->heads, s, rows);
        for (uint i = me; i < s->head_dim; i += size) {
            float all_most = -INFINITY, all_mass = 0.0f, total = 0.0f;
            for (uint n = a.begin / TFM_ATTENTION_SPLIT; n * TFM_ATTENTION_SPLIT < a.end; n++) {
                __global const float *split = from + n * (wide + 16);
                const float2 shares =
                    tfm_attention_shares(split[wide], split[wide + 1], &all_most, &all_mass);
                total = fma(total, shares.x, split[i] * shares.y);
            }
            to[i] = total * (all_mass == 0.0f ? 0.0f : 1.0f / all_mass);
        }
    }
}

/* Cells of k and v: the row's own place in its slot. */
__kernel void tfm_run_gqa_attention_group_append(__global const uchar *k, __global const uchar *v,
                                                 __global uchar *k_cache, __global uchar *v_cache,
                                                 __global const struct tfm_step *steps, uint index,
                                                 __global const int *rows, __local float *none)
{
    __global const struct tfm_step *s = steps + index;
    (void)none;
    const uint group = (uint)get_group_id(0), groups = (uint)get_num_groups(0);
    const uint n = tfm_rows(s, rows), end = (uint)tfm_share(n, group + 1, groups);
    const uint width = s->kv_heads * s->head_dim;

    for (uint row = (uint)tfm_share(n, group, groups); row < end; row++) {
        const uint sequence = tfm_attention_sequence(rows, row);
        const uint cell =
            (uint)tfm_rows_past(rows)[sequence] + row - (uint)tfm_rows_start(rows)[sequence];
        const uint slot = (uint)tfm_rows_slot(rows)[sequence];
        const ulong from = (ulong)row * width, to = ((ulong)slot * s->cells + cell) * width;
        if (cell >= s->cells || slot >= s->slots)
            continue;
        for (uint i = (uint)get_local_id(0); i < width; i += (uint)get_local_size(0)) {
            tfm_store(tfm_load(k + s->at[0], from + i, s->type[0]), k_cache + s->at[2], to + i,
                      s->type[2]);
            tfm_store(tfm_load(v + s->at[1], from + i, s->type[1]), v_cache + s->at[3], to + i,
                      s->type[3]);
        }
    }
}
