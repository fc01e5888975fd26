/* SPDX-License-Identifier: MIT
 * gqa_attention: softmax(q k^T scale) v over a KV cache   (Ainslie et al., arXiv:2305.13245)
 *   q, y [N, H, d], k, v [N, G, d] F32; k_cache, v_cache [slots, cells, G, d] F32 or F16; query
 *   head h reads kv head h / (H/G); row i of sequence s has cell p = past[s] + i, sees cells <= p
 *   without caches k and v themselves are the keys and values, and cell i of a sequence is its row i
 *   bias [buckets, H] F32, bucket [2 M + 1] I32, or absent
 *   general: bidirectional, p sees all cells of its sequence; window W, only those with |c - p| < W;
 *   lse [N, H] F32 = log(sum of exp(score)), -inf for a row that sees nothing, or absent; without caches only
 *   softcap S, score = S tanh(score / S); then score += bias[bucket[clamp(c - p, -M, M) + M]][h]
 *
 * append writes k and v to their cells; attend makes y, or, for a long context with few rows, partial
 * results, which merge adds up. Sums have one order in both: a context is cut into splits of
 * TFM_ATTENTION_SPLIT cells from cell 0, a split is summed over tiles of TFM_ATTENTION_KEYS cells
 * (online softmax), splits are merged from left to right.
 *
 * Work map of attend: the rows of a sequence times the H/G query heads of one kv head are a list of
 * queries, query j = row j / (H/G), head j % (H/G); a unit is TFM_ATTENTION_QUERIES of them:
 *
 *   cells ->  0 ...... KEYS ...... 2 KEYS ...     each K and V vector of a tile is converted to
 *   query 0   [ tile   ][ tile      ][ti\          float once for all queries of the unit; cells
 *   query 1   [        ][           ][   \         that no query of it sees are left out
 *
 * Unit u goes to part u % parts; with splits kept, split u % splits of unit u / splits does. A part has
 * `scratch` floats of workspace to itself. The work inside a unit is in gqa_attention_tile.cl, what
 * becomes of a split in gqa_attention_split.cl. */
#ifndef TFM_ATTENTION_SPLIT_CL
#include "gqa_attention_split.cl"
#endif

/* Cells of k and v: the row's own place in its slot. */
static void tfm_attention_append(__global const uchar *k, __global const uchar *v,
                                 __global uchar *k_cache, __global uchar *v_cache,
                                 __global const struct tfm_step *s, __global const int *rows,
                                 uint part, uint parts)
{
    const uint width = s->kv_heads * s->head_dim, sequences = (uint)rows[TFM_ROWS_N_SEQ];
    const uint n = tfm_rows(s, rows), end = (uint)tfm_share(n, part + 1, parts);
    uint q = 0;

    for (uint row = (uint)tfm_share(n, part, parts); row < end; row++) {
        while (q < sequences && tfm_sequence_end(rows, q) <= row)
            q++;
        if (q == sequences)
            return;
        const uint cell = (uint)(tfm_rows_past(rows)[q] + ((int)row - tfm_rows_start(rows)[q]));
        const uint slot = (uint)tfm_rows_slot(rows)[q];
        if (cell >= s->cells || slot >= s->slots)
            continue;
        const ulong from = (ulong)row * width, to = ((ulong)slot * s->cells + cell) * width;
        uint i = 0;
        for (; i + 16 <= width; i += 16) {
            tfm_store16(tfm_load16(k, from + i, s->type[0]), k_cache, to + i, s->type[2]);
            tfm_store16(tfm_load16(v, from + i, s->type[1]), v_cache, to + i, s->type[3]);
        }
        for (; i < width; i++) {
            tfm_store(tfm_load(k, from + i, s->type[0]), k_cache, to + i, s->type[2]);
            tfm_store(tfm_load(v, from + i, s->type[1]), v_cache, to + i, s->type[3]);
        }
    }
}

/* Sets up unit `unit`: its queries, scaled, and their cells. Returns its first query in the list of
 * its sequence and stores the sequence's first row; -1 when there are fewer units. */
static int tfm_attention_open(struct tfm_attention *a, uint unit, __global const float *q,
                              __global const struct tfm_step *s, __global const int *rows,
                              uint *first_row)
{
    const uint share = s->heads / s->kv_heads, d = s->head_dim;

    for (uint n = 0; n < (uint)rows[TFM_ROWS_N_SEQ]; n++) {
        const uint begin = (uint)tfm_rows_start(rows)[n];
        const uint queries = (tfm_sequence_end(rows, n) - begin) * share;
        const uint tiles = (queries + TFM_ATTENTION_QUERIES - 1) / TFM_ATTENTION_QUERIES;
        if (unit >= tiles * s->kv_heads) {
            unit -= tiles * s->kv_heads;
            continue;
        }
        const uint first = unit / s->kv_heads * TFM_ATTENTION_QUERIES;
        a->group = unit % s->kv_heads;
        const uint past = s->cells ? (uint)tfm_rows_past(rows)[n] : 0;
        const uint width = s->kv_heads * d, all = past + tfm_sequence_end(rows, n) - begin;
        a->origin = s->cells ? (ulong)(uint)tfm_rows_slot(rows)[n] * s->cells * width
                             : (ulong)begin * width;
        a->n = min(queries - first, (uint)TFM_ATTENTION_QUERIES);
        for (uint j = 0; j < a->n; j++) {
            const uint row = begin + (first + j) / share;
            const uint head = a->group * share + (first + j) % share;
            const ulong at = ((ulong)row * s->heads + head) * d;
            __global float *to = a->q + j * a->wide;
            tfm_attention_look(a, j, past + (row - begin), all, s);
            a->head[j] = head;
            tfm_attention_fetch((__global const uchar *)q, at, 0, TFM_STEP_F32, 1, d, a->wide, to);
            for (uint i = 0; i < a->wide; i += 16)
                tfm_put16(vload16(0, to + i) * s->scale, 0, to + i);
        }
        *first_row = begin;
        return (int)first;
    }
    return -1;
}

/* The inputs, and the workspace of a part. */
static void tfm_attention_start(struct tfm_attention *a, __global const uchar *k_cache,
                                __global const uchar *v_cache, __global uchar *scratch,
                                __global const uchar *bias, __global const uchar *bucket,
                                __global const struct tfm_step *s)
{
    a->k_cache = k_cache + s->at[TFM_ATTENTION_K];
    a->v_cache = v_cache + s->at[TFM_ATTENTION_V];
    a->bias = 0;
    if (s->type[TFM_ATTENTION_BIAS] != TFM_STEP_NONE) {
        a->bias = (__global const float *)(bias + s->at[TFM_ATTENTION_BIAS]);
        a->bucket = (__global const int *)(bucket + s->at[TFM_ATTENTION_BUCKET]);
    }
    a->wide = (s->head_dim + 15) & ~15u;
    a->q = (__global float *)(scratch + s->at[TFM_ATTENTION_SCRATCH]) +
           (ulong)get_group_id(0) * s->scratch;
    a->sum = a->q + TFM_ATTENTION_QUERIES * a->wide;
    a->total = a->sum + TFM_ATTENTION_QUERIES * a->wide;
    a->k = a->total + TFM_ATTENTION_QUERIES * a->wide;
    a->v = a->k + TFM_ATTENTION_KEYS * a->wide;
    a->p = a->v + TFM_ATTENTION_KEYS * a->wide;
}

/* Row times H plus head of query j. */
static ulong tfm_attention_place(const struct tfm_attention *a, uint first_row, uint first, uint j,
                                 __global const struct tfm_step *s)
{
    const uint share = s->heads / s->kv_heads;
    return ((ulong)first_row + (first + j) / share) * s->heads + a->group * share +
           (first + j) % share;
}

static void tfm_attention_attend(struct tfm_attention *a, __global const float *q,
                                 __global float *y, __global float *lse,
                                 __global const struct tfm_step *s, __global const int *rows,
                                 uint part, uint parts)
{
    const uint splits = s->split ? min(tfm_longest(rows, TFM_ATTENTION_SPLIT), s->splits) : 1;
    uint first_row = 0;
    int first;

    if (splits == 0)
        return;
    for (uint u = part; (first = tfm_attention_open(a, u / splits, q, s, rows, &first_row)) >= 0;
         u += parts) {
        uint cell = a->begin[0] / TFM_ATTENTION_SPLIT * TFM_ATTENTION_SPLIT;
        uint end = a->end[a->n - 1];
        if (s->split) {
            const uint own = u % splits * TFM_ATTENTION_SPLIT;
            if (own < cell || own >= end)
                continue;
            cell = own;
            end = min(end, own + TFM_ATTENTION_SPLIT);
        }
        for (uint j = 0; j < a->n; j++) {
            a->all_most[j] = -INFINITY;
            a->all_mass[j] = 0.0f;
        }
        for (uint i = 0; i < a->n * a->wide; i += 16)
            tfm_put16((float16)(0.0f), 0, a->total + i);
        for (; cell < end; cell += TFM_ATTENTION_SPLIT) {
            tfm_attention_split(a, cell, min(end, cell + TFM_ATTENTION_SPLIT), s);
            for (uint j = 0; j < a->n && !s->split; j++)
                tfm_attention_merge(a->most[j], a->mass[j], a->sum + j * a->wide, &a->all_most[j],
                                    &a->all_mass[j], a->total + j * a->wide, a->wide);
        }
        for (uint j = 0; j < a->n; j++) {
            const ulong place = tfm_attention_place(a, first_row, (uint)first, j, s);
            if (s->split)
                tfm_attention_keep(a, j, place, u % splits, y, s);
            else
                tfm_attention_finish(a->total + j * a->wide, a->all_mass[j],
                                     y + place * s->head_dim, s->head_dim);
            if (lse)
                lse[place] = a->all_most[j] + log(a->all_mass[j]);
        }
    }
}

__kernel void tfm_run_gqa_attention_append(__global const uchar *k, __global const uchar *v,
                                           __global uchar *k_cache, __global uchar *v_cache,
                                           __global const struct tfm_step *steps, uint index,
                                           __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_attention_append(k + s->at[0], v + s->at[1], k_cache + s->at[2], v_cache + s->at[3], s,
                         rows, get_group_id(0), get_num_groups(0));
}

__kernel void tfm_run_gqa_attention_attend(__global const uchar *q, __global uchar *y,
                                           __global const uchar *k_cache,
                                           __global const uchar *v_cache, __global uchar *scratch,
                                           __global const uchar *bias, __global const uchar *bucket,
                                           __global uchar *lse,
                                           __global const struct tfm_step *steps, uint index,
                                           __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    struct tfm_attention a;

    tfm_attention_start(&a, k_cache, v_cache, scratch, bias, bucket, s);
    tfm_attention_attend(&a, (__global const float *)(q + s->at[0]),
                         (__global float *)(y + s->at[1]),
                         s->type[7] == TFM_STEP_NONE ? 0 : (__global float *)(lse + s->at[7]), s,
                         rows, get_group_id(0), get_num_groups(0));
}
