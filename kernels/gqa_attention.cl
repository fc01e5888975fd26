/* SPDX-License-Identifier: MIT
 * gqa_attention: softmax(q k^T scale) v over a KV cache   (Ainslie et al., arXiv:2305.13245)
 *   q, y [N, H, d], k, v [N, G, d] F32; k_cache, v_cache [slots, cells, G, d] F32 or F16; query head h
 *   reads kv head h / (H/G); row i of sequence s has cell p = past[s] + i and sees the cells <= p
 *
 * Three steps: append writes k and v to their cells; attend makes y; a long context with few rows takes
 * attend_split and merge instead. Sums have one order in both: a context is cut into splits of
 * TFM_ATTENTION_SPLIT cells from cell 0, a split is summed over tiles of TFM_ATTENTION_KEYS cells
 * (online softmax), splits are merged from left to right.
 *
 * Work map of attend: the rows of a sequence times the H/G query heads of one kv head are a list of
 * queries, query j = row j / (H/G), head j % (H/G); a unit is TFM_ATTENTION_QUERIES of them:
 *
 *      cells ->  0 ........ KEYS ........ 2 KEYS ......      every K and V vector of a tile is converted
 *   query 0      [ tile    ][ tile        ][ ti\              to float once for all queries of the unit;
 *   query 1      [         ][             ][    \             cells behind the diagonal are never used
 *
 * Unit u goes to part u % parts. A part has `scratch` floats of workspace to itself. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif

#ifndef TFM_ATTENTION_QUERIES
#define TFM_ATTENTION_QUERIES 24
#endif
#ifndef TFM_ATTENTION_KEYS
#define TFM_ATTENTION_KEYS 32
#endif
#ifndef TFM_ATTENTION_SPLIT
#define TFM_ATTENTION_SPLIT 512
#endif

/* What a unit works with. `wide` is d rounded up to whole vectors, the rest of them 0. */
struct tfm_attention {
    __global const uchar *k_cache, *v_cache;
    __global float *q;              /* [QUERIES][wide], times scale */
    __global float *sum, *total;    /* [QUERIES][wide], of a split and of the splits so far */
    __global float *k, *v;          /* [KEYS][wide] */
    __global float *p;              /* [QUERIES][KEYS] */
    float most[TFM_ATTENTION_QUERIES], mass[TFM_ATTENTION_QUERIES]; /* max and sum of exp, split */
    float all_most[TFM_ATTENTION_QUERIES], all_mass[TFM_ATTENTION_QUERIES]; /* ... so far */
    uint own[TFM_ATTENTION_QUERIES]; /* cell of the query's row */
    uint n, group, slot, wide;
};

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

/* n vectors of d elements, `stride` elements apart, as floats [n][wide]. */
static void tfm_attention_fetch(__global const uchar *from, ulong at, ulong stride, uint type, uint n,
                                uint d, uint wide, __global float *to)
{
    for (uint j = 0; j < n; j++, at += stride, to += wide) {
        uint i = 0;
        for (; i + 16 <= d; i += 16)
            vstore16(tfm_load16(from, at + i, type), 0, to + i);
        if (i < d)
            vstore16(tfm_load_tail(from, at + i, d - i, type), 0, to + i);
    }
}

/* Lane i of the result is the sum of the lanes of v[i], each by neighbours: 15 times two shuffles and
 * an addition for 16 sums. */
TFM_INLINE float16 tfm_sums(const float16 *v)
{
    float16 a[8], b[4];

#pragma unroll
    for (uint i = 0; i < 8; i++)
        a[i] = (float16)(v[2 * i].even + v[2 * i].odd, v[2 * i + 1].even + v[2 * i + 1].odd);
#pragma unroll
    for (uint i = 0; i < 4; i++)
        b[i] = (float16)(a[2 * i].even + a[2 * i].odd, a[2 * i + 1].even + a[2 * i + 1].odd);
    const float16 c = (float16)(b[0].even + b[0].odd, b[1].even + b[1].odd);
    const float16 d = (float16)(b[2].even + b[2].odd, b[3].even + b[3].odd);
    return (float16)(c.even + c.odd, d.even + d.odd);
}

/* q . k for 16 keys in a row. */
static float16 tfm_attention_scores(__global const float *q, __global const float *k, uint wide)
{
    float16 products[16];

#pragma unroll
    for (uint j = 0; j < 16; j++)
        products[j] = 0.0f;
    for (uint i = 0; i < wide; i += 16) {
        const float16 part = vload16(0, q + i);
#pragma unroll
        for (uint j = 0; j < 16; j++)
            products[j] = fma(part, vload16(0, k + j * wide + i), products[j]);
    }
    return tfm_sums(products);
}

/* Probabilities (not yet divided) of query j over the `seen` cells of a tile; returns the factor that
 * earlier sums of this split shrink by. */
static float tfm_attention_softmax(struct tfm_attention *a, uint j, uint seen)
{
    const float16 lane = (float16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __global float *p = a->p + j * TFM_ATTENTION_KEYS;
    float16 most = -INFINITY, mass = 0.0f;

    for (uint i = 0; i < seen; i += 16) {
        float16 score = tfm_attention_scores(a->q + j * a->wide, a->k + i * a->wide, a->wide);
        score = select(score, (float16)(-INFINITY), lane >= (float16)((float)(seen - i)));
        vstore16(score, 0, p + i);
        most = fmax(most, score);
    }
    const float before = a->most[j], now = fmax(before, tfm_max16(most));
    const float base = now == -INFINITY ? 0.0f : now;

    for (uint i = 0; i < seen; i += 16) {
        const float16 weight = exp(vload16(0, p + i) - base);
        vstore16(weight, 0, p + i);
        mass += weight;
    }
    const float shrink = exp(before - base);
    a->most[j] = now;
    a->mass[j] = a->mass[j] * shrink + tfm_sum16(mass);
    return shrink;
}

/* sum = sum * shrink + p v for queries j..j+count-1, which see the same cells. */
TFM_INLINE void tfm_attention_values(struct tfm_attention *a, uint j, const uint count, uint seen,
                                     const float *shrink)
{
    const uint wide = a->wide;
    __global const float *p = a->p + j * TFM_ATTENTION_KEYS;
    __global float *sum = a->sum + j * wide;

    for (uint i = 0; i < wide; i += 16) {
        float16 s[4];
#pragma unroll
        for (uint c = 0; c < count; c++)
            s[c] = vload16(0, sum + c * wide + i) * shrink[c];
        for (uint cell = 0; cell < seen; cell++) {
            const float16 v = vload16(0, a->v + cell * wide + i);
#pragma unroll
            for (uint c = 0; c < count; c++)
                s[c] = fma((float16)(p[c * TFM_ATTENTION_KEYS + cell]), v, s[c]);
        }
#pragma unroll
        for (uint c = 0; c < count; c++)
            vstore16(s[c], 0, sum + c * wide + i);
    }
}

/* Cells [cell, cell + n) of the slot, n <= KEYS. */
static void tfm_attention_tile(struct tfm_attention *a, uint cell, uint n,
                               __global const struct tfm_step *s)
{
    const uint d = s->head_dim, stride = s->kv_heads * d;
    const ulong at = ((ulong)a->slot * s->cells + cell) * stride + a->group * d;
    const uint whole = (n + 15) & ~15u;
    float shrink[TFM_ATTENTION_QUERIES];
    uint seen[TFM_ATTENTION_QUERIES];

    tfm_attention_fetch(a->k_cache, at, stride, s->type[2], n, d, a->wide, a->k);
    tfm_attention_fetch(a->v_cache, at, stride, s->type[3], n, d, a->wide, a->v);
    for (uint i = n * a->wide; i < whole * a->wide; i += 16)
        vstore16((float16)(0.0f), 0, a->k + i);
    for (uint j = 0; j < a->n; j++) {
        seen[j] = a->own[j] < cell ? 0 : min(a->own[j] + 1 - cell, n);
        if (seen[j] > 0)
            shrink[j] = tfm_attention_softmax(a, j, seen[j]);
    }
    for (uint j = 0; j < a->n;) {
        if (j + 4 <= a->n && seen[j] == seen[j + 1] && seen[j] == seen[j + 2] &&
            seen[j] == seen[j + 3]) {
            if (seen[j] > 0)
                tfm_attention_values(a, j, 4, seen[j], shrink + j);
            j += 4;
        } else {
            if (seen[j] > 0)
                tfm_attention_values(a, j, 1, seen[j], shrink + j);
            j++;
        }
    }
}

/* Cells [first, end) of one split, from nothing. */
static void tfm_attention_split(struct tfm_attention *a, uint first, uint end,
                                __global const struct tfm_step *s)
{
    for (uint j = 0; j < a->n; j++) {
        a->most[j] = -INFINITY;
        a->mass[j] = 0.0f;
    }
    for (uint i = 0; i < a->n * a->wide; i += 16)
        vstore16((float16)(0.0f), 0, a->sum + i);
    for (uint cell = first; cell < end; cell += TFM_ATTENTION_KEYS)
        tfm_attention_tile(a, cell, min(end - cell, (uint)TFM_ATTENTION_KEYS), s);
}

/* Adds a split (most, mass, sum) to what came before it (all_most, all_mass, total). */
static void tfm_attention_merge(float most, float mass, __global const float *sum, float *all_most,
                                float *all_mass, __global float *total, uint wide)
{
    const float now = fmax(*all_most, most), base = now == -INFINITY ? 0.0f : now;
    const float old = exp(*all_most - base), new = exp(most - base);

    for (uint i = 0; i < wide; i += 16)
        vstore16(fma(vload16(0, total + i), (float16)(old), vload16(0, sum + i) * new), 0,
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
        vstore16(vload16(0, total + i) * factor, 0, y + i);
    for (; i < d; i++)
        y[i] = total[i] * factor;
}

/* Sets up unit `unit`: its queries, scaled, and their cells. Returns its first query in the list of its
 * sequence and stores the sequence's first row; -1 when there are fewer units. */
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
        a->slot = (uint)tfm_rows_slot(rows)[n];
        a->n = min(queries - first, (uint)TFM_ATTENTION_QUERIES);
        for (uint j = 0; j < a->n; j++) {
            const uint row = begin + (first + j) / share;
            const uint head = a->group * share + (first + j) % share;
            const ulong at = ((ulong)row * s->heads + head) * d;
            __global float *to = a->q + j * a->wide;
            a->own[j] = (uint)tfm_rows_past(rows)[n] + (row - begin);
            a->own[j] = min(a->own[j], s->cells - 1);
            tfm_attention_fetch((__global const uchar *)q, at, 0, TFM_STEP_F32, 1, d, a->wide, to);
            for (uint i = 0; i < a->wide; i += 16)
                vstore16(vload16(0, to + i) * s->scale, 0, to + i);
        }
        *first_row = begin;
        return (int)first;
    }
    return -1;
}

/* Divides the workspace of a part. */
static void tfm_attention_scratch(struct tfm_attention *a, __global float *scratch,
                                  __global const struct tfm_step *s)
{
    a->wide = (s->head_dim + 15) & ~15u;
    a->q = scratch;
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

static void tfm_attention_attend(__global const float *q, __global const uchar *k_cache,
                                 __global const uchar *v_cache, __global float *y,
                                 __global float *scratch, __global const struct tfm_step *s,
                                 __global const int *rows, uint part, uint parts)
{
    struct tfm_attention a;
    uint first_row = 0;
    int first;

    a.k_cache = k_cache;
    a.v_cache = v_cache;
    tfm_attention_scratch(&a, scratch + (ulong)part * s->scratch, s);
    for (uint unit = part; (first = tfm_attention_open(&a, unit, q, s, rows, &first_row)) >= 0;
         unit += parts) {
        const uint end = a.own[a.n - 1] + 1;
        for (uint j = 0; j < a.n; j++) {
            a.all_most[j] = -INFINITY;
            a.all_mass[j] = 0.0f;
        }
        for (uint i = 0; i < a.n * a.wide; i += 16)
            vstore16((float16)(0.0f), 0, a.total + i);
        for (uint cell = 0; cell < end; cell += TFM_ATTENTION_SPLIT) {
            tfm_attention_split(&a, cell, min(end, cell + TFM_ATTENTION_SPLIT), s);
            for (uint j = 0; j < a.n; j++)
                tfm_attention_merge(a.most[j], a.mass[j], a.sum + j * a.wide, &a.all_most[j],
                                    &a.all_mass[j], a.total + j * a.wide, a.wide);
        }
        for (uint j = 0; j < a.n; j++)
            tfm_attention_finish(
                a.total + j * a.wide, a.all_mass[j],
                y + tfm_attention_place(&a, first_row, (uint)first, j, s) * s->head_dim,
                s->head_dim);
    }
}

/* Splits of the longest sequence of this run, at most s->splits. */
static uint tfm_attention_splits(__global const struct tfm_step *s, __global const int *rows)
{
    uint most = 0;

    for (uint n = 0; n < (uint)rows[TFM_ROWS_N_SEQ]; n++)
        most = max(most, (uint)tfm_rows_past(rows)[n] + tfm_sequence_end(rows, n) -
                             (uint)tfm_rows_start(rows)[n]);
    return min((most + TFM_ATTENTION_SPLIT - 1) / TFM_ATTENTION_SPLIT, s->splits);
}

/* One split of one unit at a time, left as partial [N H][splits][wide + 16]: sum, most, mass. */
static void tfm_attention_attend_split(__global const float *q, __global const uchar *k_cache,
                                       __global const uchar *v_cache, __global float *partial,
                                       __global float *scratch, __global const struct tfm_step *s,
                                       __global const int *rows, uint part, uint parts)
{
    const uint splits = tfm_attention_splits(s, rows);
    struct tfm_attention a;
    uint first_row = 0;
    int first;

    if (splits == 0)
        return;
    a.k_cache = k_cache;
    a.v_cache = v_cache;
    tfm_attention_scratch(&a, scratch + (ulong)part * s->scratch, s);
    for (uint u = part;
         (first = tfm_attention_open(&a, u / splits, q, s, rows, &first_row)) >= 0; u += parts) {
        const uint end = a.own[a.n - 1] + 1, cell = u % splits * TFM_ATTENTION_SPLIT;
        if (cell >= end)
            continue;
        tfm_attention_split(&a, cell, min(end, cell + TFM_ATTENTION_SPLIT), s);
        for (uint j = 0; j < a.n; j++) {
            const ulong place = tfm_attention_place(&a, first_row, (uint)first, j, s);
            __global float *to = partial + (place * s->splits + u % splits) * (a.wide + 16);
            for (uint i = 0; i < a.wide; i += 16)
                vstore16(vload16(0, a.sum + j * a.wide + i), 0, to + i);
            to[a.wide] = a.most[j];
            to[a.wide + 1] = a.mass[j];
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
    uint n = 0;

    for (uint h = (uint)tfm_share(heads, part, parts); h < end; h++) {
        const uint row = h / s->heads;
        while (n < (uint)rows[TFM_ROWS_N_SEQ] && tfm_sequence_end(rows, n) <= row)
            n++;
        if (n == (uint)rows[TFM_ROWS_N_SEQ])
            return;
        const uint own = (uint)tfm_rows_past(rows)[n] + (row - (uint)tfm_rows_start(rows)[n]);
        float most = -INFINITY, mass = 0.0f;
        for (uint i = 0; i < wide; i += 16)
            vstore16((float16)(0.0f), 0, total + i);
        for (uint split = 0; split < s->splits && split <= own / TFM_ATTENTION_SPLIT; split++) {
            __global const float *from = partial + ((ulong)h * s->splits + split) * (wide + 16);
            tfm_attention_merge(from[wide], from[wide + 1], from, &most, &mass, total, wide);
        }
        tfm_attention_finish(total, mass, y + (ulong)h * s->head_dim, s->head_dim);
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
                                           __global const struct tfm_step *steps, uint index,
                                           __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_attention_attend((__global const float *)(q + s->at[0]), k_cache + s->at[2],
                         v_cache + s->at[3], (__global float *)(y + s->at[1]),
                         (__global float *)(scratch + s->at[4]), s, rows, get_group_id(0),
                         get_num_groups(0));
}

__kernel void tfm_run_gqa_attention_split(__global const uchar *q, __global uchar *partial,
                                          __global const uchar *k_cache,
                                          __global const uchar *v_cache, __global uchar *scratch,
                                          __global const struct tfm_step *steps, uint index,
                                          __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_attention_attend_split((__global const float *)(q + s->at[0]), k_cache + s->at[2],
                               v_cache + s->at[3], (__global float *)(partial + s->at[1]),
                               (__global float *)(scratch + s->at[4]), s, rows, get_group_id(0),
                               get_num_groups(0));
}

__kernel void tfm_run_gqa_attention_merge(__global const uchar *partial, __global uchar *y,
                                          __global uchar *scratch,
                                          __global const struct tfm_step *steps, uint index,
                                          __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_attention_merge_splits((__global const float *)(partial + s->at[0]),
                               (__global float *)(y + s->at[1]),
                               (__global float *)(scratch + s->at[2]), s, rows, get_group_id(0),
                               get_num_groups(0));
}
