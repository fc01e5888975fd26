/* SPDX-License-Identifier: MIT
 * The inner part of gqa_attention: one unit of queries against one tile of cells, online softmax in
 * float. gqa_attention.cl has the formula and the whole picture.
 *   q, sum, total [QUERIES][wide], k [wide][KEYS], v [KEYS][wide], p [QUERIES][KEYS], in the workspace
 *   of a part
 *
 * Work map: all of it belongs to one part. Keys are turned into columns as they are converted, so that
 * lane = key: scores of 8 queries times 32 keys are 16 sums in vectors, and no lanes are added up. A
 * vector of V is loaded once for up to four queries that see the same cells. Each query sums over its
 * cells from left to right. */
#ifndef TFM_ATTENTION_EXP_CL
#include "attention_exp.cl"
#endif
#define TFM_ATTENTION_TILE_CL

#ifndef TFM_ATTENTION_QUERIES
#define TFM_ATTENTION_QUERIES 48
#endif
#ifndef TFM_ATTENTION_KEYS
#define TFM_ATTENTION_KEYS 64
#endif
#ifndef TFM_ATTENTION_SPLIT
#define TFM_ATTENTION_SPLIT 256
#endif

/* 1 = what is beyond plain causal attention: bidirectional, window, soft cap, relative bias. It is a
 * program of its own, so that the plain one pays nothing for it. */
#ifndef TFM_ATTENTION_GENERAL
#define TFM_ATTENTION_GENERAL 0
#endif

/* Places of the operands that attend and attend_split have in common. */
#define TFM_ATTENTION_K       2
#define TFM_ATTENTION_V       3
#define TFM_ATTENTION_SCRATCH 4
#define TFM_ATTENTION_BIAS    5
#define TFM_ATTENTION_BUCKET  6

/* What a unit works with. `wide` is d rounded up to whole vectors, the rest of them 0. */
struct tfm_attention {
    __global const uchar *k_cache, *v_cache;
    __global float *q;           /* [QUERIES][wide], times scale */
    __global float *sum, *total; /* [QUERIES][wide], of a split and of the splits so far */
    __global float *k, *v;       /* [wide][KEYS], [KEYS][wide] */
    __global float *p;           /* [QUERIES][KEYS] */
    float most[TFM_ATTENTION_QUERIES], mass[TFM_ATTENTION_QUERIES]; /* max and sum of exp, split */
    float all_most[TFM_ATTENTION_QUERIES], all_mass[TFM_ATTENTION_QUERIES]; /* ... so far */
    uint own[TFM_ATTENTION_QUERIES];                               /* cell of the query's row */
    uint begin[TFM_ATTENTION_QUERIES], end[TFM_ATTENTION_QUERIES]; /* cells that a query sees */
    uint head[TFM_ATTENTION_QUERIES];                              /* general: its head */
    ulong origin; /* element of the keys and values where cell 0 of the sequence begins */
    __global const float *bias; /* general: [buckets, H], and its buckets [2 M + 1] */
    __global const int *bucket;
    uint n, group, wide;
};

/* What query j sees from cell `own`, of `all` that its sequence has. */
static void tfm_attention_look(struct tfm_attention *a, uint j, uint own, uint all,
                               __global const struct tfm_step *s)
{
    const uint limit = s->cells ? s->cells : all;

    own = min(own, limit - 1);
    a->own[j] = own;
    a->begin[j] = 0;
    a->end[j] = own + 1;
    if (TFM_ATTENTION_GENERAL) {
        const uint window = s->window;
        if (s->bidirectional)
            a->end[j] = min(all, limit);
        if (window) {
            a->begin[j] = own >= window ? own - window + 1 : 0;
            a->end[j] = window < a->end[j] - own ? own + window : a->end[j];
        }
    }
}

/* n vectors of d elements, `stride` elements apart, as floats [n][wide]. Column by column: loads
 * that are a fixed distance apart are what a processor fetches ahead. */
TFM_INLINE void tfm_attention_columns(__global const uchar *from, ulong at, ulong stride,
                                      const uint type, uint n, uint d, uint wide,
                                      __global float *to)
{
    for (uint i = 0; i + 16 <= d; i += 16) {
        for (uint j = 0; j < n; j++)
            tfm_put16(tfm_load16(from, at + j * stride + i, type), 0, to + j * wide + i);
    }
    if (d % 16 != 0) {
        const uint whole = d & ~15u;
        for (uint j = 0; j < n; j++)
            tfm_put16(tfm_load_tail(from, at + j * stride + whole, d - whole, type), 0,
                      to + j * wide + whole);
    }
}

static void tfm_attention_fetch(__global const uchar *from, ulong at, ulong stride, uint type,
                                uint n, uint d, uint wide, __global float *to)
{
    if (type == TFM_STEP_F16)
        tfm_attention_columns(from, at, stride, TFM_STEP_F16, n, d, wide, to);
    else
        tfm_attention_columns(from, at, stride, TFM_STEP_F32, n, d, wide, to);
}

/* n keys as columns: to [wide][KEYS]. Up to the next 32 the last one is repeated. One by one, and by 16 x 16
 * where there are vectors. */
static void tfm_attention_turn_each(__global const uchar *from, ulong at, ulong stride, uint type,
                                    uint n, uint d, uint wide, __global float *to)
{
    for (uint key = 0; key < ((n + 31) & ~31u); key++) {
        const ulong element = at + min(key, n - 1) * stride;
        for (uint i = 0; i < wide; i++)
            to[i * TFM_ATTENTION_KEYS + key] = i < d ? tfm_load(from, element + i, type) : 0.0f;
    }
}

TFM_INLINE void tfm_attention_turn(__global const uchar *from, ulong at, ulong stride,
                                   const uint type, uint n, uint d, uint wide, __global float *to)
{
    for (uint key = 0; key < ((n + 31) & ~31u); key += 16) {
        for (uint i = 0; i < wide; i += 16) {
            float16 v[16];
#pragma unroll
            for (uint j = 0; j < 16; j++) {
                const ulong element = at + min(key + j, n - 1) * stride + i;
                v[j] = i + 16 <= d ? tfm_load16(from, element, type)
                                   : tfm_load_tail(from, element, d - i, type);
            }
            tfm_transpose(v);
#pragma unroll
            for (uint j = 0; j < 16; j++)
                tfm_put16(v[j], 0, to + (i + j) * TFM_ATTENTION_KEYS + key);
        }
    }
}

/* q . k of `count` queries from j on (those past the last repeat it) for cells [first, end) of the tile,
 * end rounded up to 32s; each product is summed over d from left to right. */
TFM_INLINE void tfm_attention_scores(const struct tfm_attention *a, uint j, const uint count,
                                     uint first, uint end)
{
    __global const float *q[8];

#pragma unroll
    for (uint c = 0; c < count; c++)
        q[c] = a->q + min(j + c, a->n - 1) * a->wide;
    for (uint cell = first & ~31u; cell < end; cell += 32) {
        __global const float *k = a->k + cell;
        float16 low[8], high[8];
#pragma unroll
        for (uint c = 0; c < count; c++)
            low[c] = high[c] = 0.0f;
        for (uint i = 0; i < a->wide; i++, k += TFM_ATTENTION_KEYS) {
            const float16 k0 = vload16(0, k), k1 = vload16(1, k);
#pragma unroll
            for (uint c = 0; c < count; c++) {
                const float16 part = q[c][i];
                low[c] = fma(part, k0, low[c]);
                high[c] = fma(part, k1, high[c]);
            }
        }
#pragma unroll
        for (uint c = 0; c < count; c++) {
            __global float *to = a->p + min(j + c, a->n - 1) * TFM_ATTENTION_KEYS + cell;
            tfm_put16(low[c], 0, to);
            tfm_put16(high[c], 1, to);
        }
    }
}

/* Soft cap and relative bias of query j for 16 cells from `cell` on. */
static float16 tfm_attention_adjust(const struct tfm_attention *a, uint j, uint cell, float16 score,
                                    __global const struct tfm_step *s)
{
    if (s->softcap > 0.0f)
        score = s->softcap * tanh(score / s->softcap);
    if (a->bias) {
        const int span = (int)s->span, distance = (int)cell - (int)a->own[j];
        float lanes[16];
        for (int i = 0; i < 16; i++) {
            const int at = clamp(distance + i, -span, span) + span;
            lanes[i] = a->bias[(ulong)a->bucket[at] * s->heads + a->head[j]];
        }
        score += vload16(0, lanes);
    }
    return score;
}

/* From the scores the probabilities (not yet divided) of query j over cells [skip, seen) of the tile that begins at
 * `cell`; returns the factor that earlier sums of this split shrink by. */
static float tfm_attention_softmax(struct tfm_attention *a, uint j, uint skip, uint seen, uint cell,
                                   __global const struct tfm_step *s)
{
    const float16 lane = (float16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __global float *p = a->p + j * TFM_ATTENTION_KEYS;
    float16 most = -INFINITY, mass = 0.0f;
    uint i = skip & ~15u;

    for (; !TFM_ATTENTION_GENERAL && i + 16 <= seen; i += 16)
        most = fmax(most, vload16(0, p + i));
    for (; i < seen; i += 16) {
        float16 score = vload16(0, p + i);
        if (TFM_ATTENTION_GENERAL) {
            score = tfm_attention_adjust(a, j, cell + i, score, s);
            score = select(score, (float16)(-INFINITY), lane < (float16)((float)skip - (float)i));
        }
        score = select(score, (float16)(-INFINITY), lane >= (float16)((float)(seen - i)));
        tfm_put16(score, 0, p + i);
        most = fmax(most, score);
    }
    const float before = a->most[j], now = fmax(before, tfm_max16(most));
    const float base = now == -INFINITY ? 0.0f : now;

    for (i = skip & ~15u; i < seen; i += 16) {
        const float16 below = vload16(0, p + i) - base;
        const float16 weight = TFM_ATTENTION_GENERAL ? tfm_attention_exp(below)
                                                     : tfm_attention_power(below * 1.44269504f);
        tfm_put16(weight, 0, p + i);
        mass += weight;
    }
    const float shrink = before == now ? 1.0f : tfm_attention_exp((float16)(before - base)).s0;
    a->most[j] = now;
    a->mass[j] = a->mass[j] * shrink + tfm_sum16(mass);
    return shrink;
}

/* sum = sum * shrink + p v for queries j..j+count-1, which see the same cells, and `vectors` 16s of
 * their elements from i on. A weight of 0 masks its cell: what V holds there does not matter. */
TFM_INLINE void tfm_attention_block(struct tfm_attention *a, uint j, const uint count, uint i,
                                    const uint vectors, uint skip, uint seen, const float *shrink)
{
    const uint wide = a->wide;
    __global const float *p = a->p + j * TFM_ATTENTION_KEYS, *v = a->v + skip * wide + i;
    __global float *sum = a->sum + j * wide + i;
    float16 s[4][4];

#pragma unroll
    for (uint c = 0; c < count; c++) {
#pragma unroll
        for (uint b = 0; b < vectors; b++)
            s[c][b] = vload16(b, sum + c * wide) * shrink[c];
    }
    for (uint cell = skip; cell < seen; cell++, v += wide) {
#pragma unroll
        for (uint c = 0; c < count; c++) {
            const float weight = p[c * TFM_ATTENTION_KEYS + cell];
            if (TFM_ATTENTION_GENERAL && weight == 0.0f)
                continue;
#pragma unroll
            for (uint b = 0; b < vectors; b++)
                s[c][b] = fma((float16)(weight), vload16(b, v), s[c][b]);
        }
    }
#pragma unroll
    for (uint c = 0; c < count; c++) {
#pragma unroll
        for (uint b = 0; b < vectors; b++)
            tfm_put16(s[c][b], b, sum + c * wide);
    }
}

TFM_INLINE void tfm_attention_values(struct tfm_attention *a, uint j, const uint count, uint skip,
                                     uint seen, const float *shrink)
{
    uint i = 0;

    for (; i + 64 <= a->wide; i += 64)
        tfm_attention_block(a, j, count, i, 4, skip, seen, shrink);
    for (; i < a->wide; i += 16)
        tfm_attention_block(a, j, count, i, 1, skip, seen, shrink);
}

/* Scores of all queries, up to 8 at a time; they see and skip only more from query to query. */
static void tfm_attention_all_scores(const struct tfm_attention *a, const uint *skip,
                                     const uint *seen)
{
    if (TFM_NARROW) {
        for (uint j = 0; j < a->n; j++)
            tfm_attention_scores(a, j, 1, skip[j], seen[j]);
    } else {
        for (uint j = 0; j < a->n; j += 8) {
            const uint last = min(j + 8, a->n) - 1;
            if (last - j < 4)
                tfm_attention_scores(a, j, 4, skip[j], seen[last]);
            else
                tfm_attention_scores(a, j, 8, skip[j], seen[last]);
        }
    }
}

/* Sums of queries j..j+same-1, same <= 4, which see the same cells. */
static void tfm_attention_alike(struct tfm_attention *a, uint j, uint same, uint skip, uint seen,
                                const float *shrink)
{
    if (TFM_NARROW) {
        for (uint i = 0; i < a->wide; i += 16)
            tfm_attention_block(a, j, 1, i, 1, skip, seen, shrink);
    } else if (same == 4) {
        tfm_attention_values(a, j, 4, skip, seen, shrink);
    } else if (same == 3) {
        tfm_attention_values(a, j, 3, skip, seen, shrink);
    } else if (same == 2) {
        tfm_attention_values(a, j, 2, skip, seen, shrink);
    } else {
        tfm_attention_values(a, j, 1, skip, seen, shrink);
    }
}

/* Cells [cell, cell + n) of the sequence, n <= KEYS. */
static void tfm_attention_tile(struct tfm_attention *a, uint cell, uint n,
                               __global const struct tfm_step *s)
{
    const uint d = s->head_dim, stride = s->kv_heads * d;
    const ulong at = a->origin + (ulong)cell * stride + a->group * d;
    float shrink[TFM_ATTENTION_QUERIES];
    uint skip[TFM_ATTENTION_QUERIES], seen[TFM_ATTENTION_QUERIES];

    if (TFM_NARROW)
        tfm_attention_turn_each(a->k_cache, at, stride, s->type[TFM_ATTENTION_K], n, d, a->wide,
                                a->k);
    else if (s->type[TFM_ATTENTION_K] == TFM_STEP_F16)
        tfm_attention_turn(a->k_cache, at, stride, TFM_STEP_F16, n, d, a->wide, a->k);
    else
        tfm_attention_turn(a->k_cache, at, stride, TFM_STEP_F32, n, d, a->wide, a->k);
    tfm_attention_fetch(a->v_cache, at, stride, s->type[TFM_ATTENTION_V], n, d, a->wide, a->v);
    for (uint j = 0; j < a->n; j++) {
        seen[j] = a->end[j] < cell ? 0 : min(a->end[j] - cell, n);
        skip[j] = TFM_ATTENTION_GENERAL && a->begin[j] > cell ? a->begin[j] - cell : 0;
    }
    tfm_attention_all_scores(a, skip, seen);
    for (uint j = 0; j < a->n; j++) {
        if (seen[j] > skip[j])
            shrink[j] = tfm_attention_softmax(a, j, skip[j], seen[j], cell, s);
    }
    for (uint j = 0, same; j < a->n; j += same) {
        for (same = 1; same < (TFM_NARROW ? 1 : 4) && j + same < a->n &&
                       seen[j + same] == seen[j] && skip[j + same] == skip[j];
             same++)
            ;
        if (seen[j] > skip[j])
            tfm_attention_alike(a, j, same, skip[j], seen[j], shrink + j);
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
        tfm_put16((float16)(0.0f), 0, a->sum + i);
    if (TFM_ATTENTION_GENERAL) /* whole tiles before the window of the first query */
        first = max(first, a->begin[0] / TFM_ATTENTION_KEYS * TFM_ATTENTION_KEYS);
    for (uint cell = first; cell < end; cell += TFM_ATTENTION_KEYS)
        tfm_attention_tile(a, cell, min(end - cell, (uint)TFM_ATTENTION_KEYS), s);
}
