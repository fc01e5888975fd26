/* SPDX-License-Identifier: MIT
 * attention_grad: gradients of attention without caches; no matrix of rows times cells exists
 *   q, dy, dq [N, H, d], k, v, dk, dv [N, G, d], lse, delta [N, H] F32, cell c of a sequence = its row c
 *   P = exp(score - lse), dP = dy . v, delta = sum over cells of P dP, dS = P (dP - delta), through the cap
 *   dS (1 - t^2) with t = tanh(q . k scale / softcap);  scores, masks and bias as in gqa_attention.cl
 *   dq = scale (sum of P dP k - delta sum of P k),  dk = sum of dS q scale,  dv = sum of P dy
 * In the workspace of a launch, after the scratch of the parts:
 *   stats [N H][2]: lse, +inf for a query that saw nothing, and delta
 *   bias [2 M + 1][H]: rel_bias by distance; partial [units of cells][2 M + 1][H/G]: sums of dS by distance
 *
 *   rows: 64 queries (rows times the H/G heads of a kv head) and, tile by tile, the cells that they see
 *   cells: 64 cells of a kv head and, tile by tile, the queries that see them
 *
 *             64 cells          turned: 64 queries     products of matrix.cl: scores and dP into two tiles,
 *   query 0   [ P ][ dP ]       cell 0  [ P ][ dP ]    which become the factors of the products with k, or
 *   query 1   [   ][    ]       cell 1  [   ][    ]    with dy and q
 *
 * Work map: unit u goes to part u % parts; a part has `scratch` floats to itself. A sum runs over the tiles from
 * left to right and belongs to one unit. */
#ifndef TFM_ATTENTION_GRAD_UNITS_CL
#include "attention_grad_units.cl"
#endif
#ifndef TFM_MATRIX_CL
#include "matrix.cl"
#endif

/* What a part works with. */
struct tfm_attention_grad {
    struct tfm_attention_grad_unit of;
    __global float *queries, *slopes; /* [TILE][d] of q times scale and of dy */
    __global float *s, *p;            /* [TILE][TILE], rows as long as the tile is wide */
    __global float *a, *b;            /* [TILE][d], sums */
    __global float *tile;             /* of a product */
    /* of each query, those past the last see nothing: */
    float base[TFM_ATTENTION_GRAD_TILE], delta[TFM_ATTENTION_GRAD_TILE];
    int own[TFM_ATTENTION_GRAD_TILE], begin[TFM_ATTENTION_GRAD_TILE], end[TFM_ATTENTION_GRAD_TILE];
    uint head[TFM_ATTENTION_GRAD_TILE];
};

static void tfm_attention_grad_start(struct tfm_attention_grad *x, __global float *workspace,
                                     __global const struct tfm_step *s)
{
    const uint vectors = TFM_ATTENTION_GRAD_TILE * s->head_dim;
    const uint scores = TFM_ATTENTION_GRAD_TILE * TFM_ATTENTION_GRAD_TILE;

    x->queries = workspace + (ulong)get_group_id(0) * s->scratch;
    x->slopes = x->queries + vectors;
    x->a = x->slopes + vectors;
    x->b = x->a + vectors;
    x->s = x->b + vectors;
    x->p = x->s + scores;
    x->tile = x->p + scores;
}

/* c [m][j] = a [m][k] times b [j][k] turned. */
static void tfm_attention_grad_scores(const struct tfm_attention_grad *x, __global const float *a,
                                      uint a_stride, uint m, __global const float *b, uint b_stride,
                                      uint j, uint k, __global float *c)
{
    const struct tfm_matrix product = {a,
                                       (__global const uchar *)b,
                                       0,
                                       c,
                                       x->tile,
                                       a_stride,
                                       b_stride,
                                       TFM_STEP_F32,
                                       TFM_STEP_NONE,
                                       m,
                                       k,
                                       j};

    tfm_matrix(0, 1, 0, &product, 0, 1);
}

/* c [m][j] += a [m][k] times b [k][j]. */
static void tfm_attention_grad_add(const struct tfm_attention_grad *x, __global const float *a,
                                   uint m, __global const float *b, uint b_stride, uint j, uint k,
                                   __global float *c)
{
    const struct tfm_matrix product = {
        a, (__global const uchar *)b, 0, c, x->tile, k, b_stride, TFM_STEP_F32, TFM_STEP_NONE, m, k,
        j};

    tfm_matrix(0, 0, 1, &product, 0, 1);
}

static void tfm_attention_grad_clear(__global float *to, uint n)
{
    uint i = 0;

    for (; i + 16 <= n; i += 16)
        tfm_put16((float16)(0.0f), 0, to + i);
    for (; i < n; i++)
        to[i] = 0.0f;
}

/* to [d] = factor times from. */
static void tfm_attention_grad_copy(__global const float *from, float factor, uint d,
                                    __global float *to)
{
    uint i = 0;

    for (; i + 16 <= d; i += 16)
        tfm_put16(vload16(0, from + i) * factor, 0, to + i);
    for (; i < d; i++)
        to[i] = from[i] * factor;
}

/* Queries [first, first + n): their vectors and what they see. */
static void tfm_attention_grad_take(struct tfm_attention_grad *x, uint first, uint n,
                                    __global const struct tfm_step *s)
{
    const uint share = s->heads / s->kv_heads, d = s->head_dim;

    for (uint j = 0; j < TFM_ATTENTION_GRAD_TILE; j++) {
        x->base[j] = INFINITY; /* what saw nothing weighs nothing */
        x->delta[j] = 0.0f;
        x->own[j] = x->begin[j] = x->end[j] = 0;
        x->head[j] = 0;
        if (j >= n)
            continue;
        const ulong place = tfm_attention_grad_place(&x->of, first + j, s);
        const int own = (int)((first + j) / share);
        const int2 sight = tfm_attention_grad_sight(&x->of, own, s);
        x->own[j] = own;
        x->head[j] = (uint)(place % s->heads);
        x->begin[j] = sight.x;
        x->end[j] = sight.y;
        tfm_attention_grad_copy(x->of.q + place * d, s->scale, d, x->queries + j * d);
        tfm_attention_grad_copy(x->of.dy + place * d, 1.0f, d, x->slopes + j * d);
    }
}

/* The score after soft cap and before the bias; slope: what its gradient shrinks by. */
static float16 tfm_attention_grad_bend(float16 score, float16 *slope, float softcap)
{
    *slope = 1.0f;
    if (softcap <= 0.0f)
        return score;
    const float16 bent = tanh(score / softcap);
    *slope = 1.0f - bent * bent;
    return softcap * bent;
}

/* s and p of query j over `cells` cells from `cell` on: from score and dP to P slope and P dP slope; adds up
 * delta. */
static void tfm_attention_grad_row(struct tfm_attention_grad *x, uint j, uint cell, uint cells,
                                   __global const struct tfm_step *s)
{
    const int16 lane = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    float16 sum = 0.0f;

    for (uint i = 0; i < cells; i += 16) {
        const uint lanes = min(cells - i, 16u);
        __global float *score_at = x->s + j * cells + i, *dp_at = x->p + j * cells + i;
        const int16 at = (int)(cell + i) + lane;
        const int16 seen = (at >= x->begin[j]) & (at < x->end[j]);
        float16 slope,
            score = tfm_matrix_take((__global const uchar *)score_at, 0, lanes, TFM_STEP_F32);
        const float16 dp = tfm_matrix_take((__global const uchar *)dp_at, 0, lanes, TFM_STEP_F32);
        score = tfm_attention_grad_bend(score, &slope, s->softcap);
        if (x->of.bias) {
            float bias[16];
            for (uint n = 0; n < 16; n++)
                bias[n] =
                    tfm_attention_grad_bias(&x->of, (int)(cell + i + n) - x->own[j], x->head[j], s);
            score += vload16(0, bias);
        }
        const float16 weight = select((float16)(0.0f), exp(score - x->base[j]), seen);
        const float16 both = select((float16)(0.0f), weight * dp, seen);
        sum += both;
        tfm_matrix_put(weight * slope, score_at, lanes);
        tfm_matrix_put(both * slope, dp_at, lanes);
    }
    x->delta[j] += tfm_sum16(sum);
}

/* One unit of rows: queries [first, first + n) of a sequence and kv head. */
static void tfm_attention_grad_rows(struct tfm_attention_grad *x, uint first, uint n,
                                    __global const float *lse, __global float *dq,
                                    __global float *delta, __global float *stats,
                                    __global const struct tfm_step *s)
{
    const uint d = s->head_dim, stride = s->kv_heads * d;

    tfm_attention_grad_take(x, first, n, s);
    for (uint j = 0; j < n; j++) {
        const float base = lse[tfm_attention_grad_place(&x->of, first + j, s)];
        x->base[j] = base == -INFINITY ? INFINITY : base;
    }
    tfm_attention_grad_clear(x->a, n * d);
    tfm_attention_grad_clear(x->b, n * d);
    /* what queries see only grows from one to the next */
    for (uint cell = (uint)x->begin[0]; cell < (uint)x->end[n - 1];
         cell += TFM_ATTENTION_GRAD_TILE) {
        const uint cells = min((uint)x->end[n - 1] - cell, TFM_ATTENTION_GRAD_TILE);
        const ulong at = tfm_attention_grad_cell(&x->of, cell, s);
        tfm_attention_grad_scores(x, x->queries, d, n, x->of.k + at, stride, cells, d, x->s);
        tfm_attention_grad_scores(x, x->slopes, d, n, x->of.v + at, stride, cells, d, x->p);
        for (uint j = 0; j < n; j++)
            tfm_attention_grad_row(x, j, cell, cells, s);
        tfm_attention_grad_add(x, x->p, n, x->of.k + at, stride, d, cells, x->a);
        tfm_attention_grad_add(x, x->s, n, x->of.k + at, stride, d, cells, x->b);
    }
    for (uint j = 0; j < n; j++) {
        const ulong place = tfm_attention_grad_place(&x->of, first + j, s);
        __global const float *a = x->a + j * d, *b = x->b + j * d;
        for (uint i = 0; i < d; i++)
            dq[place * d + i] = s->scale * fma(-x->delta[j], b[i], a[i]);
        delta[place] = stats[2 * place + 1] = x->delta[j];
        stats[2 * place] = x->base[j];
    }
}

/* s and p of cell number c of the tile over n queries: from score and dP to P and dS; adds to `sums` [2 M + 1][H/G]
 * unless it is 0. */
static void tfm_attention_grad_column(struct tfm_attention_grad *x, uint c, uint cell, uint n,
                                      __global float *sums, __global const struct tfm_step *s)
{
    const uint share = s->heads / s->kv_heads;

    for (uint i = 0; i < n; i += 16) {
        const uint lanes = min(n - i, 16u);
        __global float *score_at = x->s + c * n + i, *dp_at = x->p + c * n + i;
        const int16 seen =
            ((int)cell >= vload16(0, x->begin + i)) & ((int)cell < vload16(0, x->end + i));
        float16 slope,
            score = tfm_matrix_take((__global const uchar *)score_at, 0, lanes, TFM_STEP_F32);
        const float16 dp = tfm_matrix_take((__global const uchar *)dp_at, 0, lanes, TFM_STEP_F32);
        score = tfm_attention_grad_bend(score, &slope, s->softcap);
        if (x->of.bias) {
            float bias[16];
            for (uint j = 0; j < 16; j++)
                bias[j] =
                    tfm_attention_grad_bias(&x->of, (int)cell - x->own[i + j], x->head[i + j], s);
            score += vload16(0, bias);
        }
        const float16 weight = select((float16)(0.0f), exp(score - vload16(0, x->base + i)), seen);
        const float16 ds = select((float16)(0.0f), weight * (dp - vload16(0, x->delta + i)), seen);
        if (sums) {
            const int span = (int)s->span;
            float each[16];
            vstore16(ds, 0, each);
            for (uint j = 0; j < lanes; j++)
                sums[(clamp((int)cell - x->own[i + j], -span, span) + span) * (int)share +
                     (int)(x->head[i + j] % share)] += each[j];
        }
        tfm_matrix_put(weight, score_at, lanes);
        tfm_matrix_put(ds * slope, dp_at, lanes);
    }
}

/* One unit of cells: cells [cell, cell + cells) of a sequence and kv head. */
static void tfm_attention_grad_cells(struct tfm_attention_grad *x, uint cell, uint cells,
                                     __global const float *stats, __global float *dk,
                                     __global float *dv, __global float *sums,
                                     __global const struct tfm_step *s)
{
    const uint d = s->head_dim, stride = s->kv_heads * d, share = s->heads / s->kv_heads;
    const ulong at = tfm_attention_grad_cell(&x->of, cell, s);
    const uint2 seers = tfm_attention_grad_seers(&x->of, cell, cell + cells - 1, s);

    tfm_attention_grad_clear(x->a, cells * d);
    tfm_attention_grad_clear(x->b, cells * d);
    if (sums)
        tfm_attention_grad_clear(sums, (2 * s->span + 1) * share);
    for (uint first = seers.x * share; first < seers.y * share; first += TFM_ATTENTION_GRAD_TILE) {
        const uint n = min(seers.y * share - first, TFM_ATTENTION_GRAD_TILE);
        tfm_attention_grad_take(x, first, n, s);
        for (uint j = 0; j < n; j++) {
            const ulong place = tfm_attention_grad_place(&x->of, first + j, s);
            x->base[j] = stats[2 * place];
            x->delta[j] = stats[2 * place + 1];
        }
        tfm_attention_grad_scores(x, x->of.k + at, stride, cells, x->queries, d, n, d, x->s);
        tfm_attention_grad_scores(x, x->of.v + at, stride, cells, x->slopes, d, n, d, x->p);
        for (uint c = 0; c < cells; c++)
            tfm_attention_grad_column(x, c, cell + c, n, sums, s);
        tfm_attention_grad_add(x, x->p, cells, x->queries, d, d, n, x->a);
        tfm_attention_grad_add(x, x->s, cells, x->slopes, d, d, n, x->b);
    }
    for (uint c = 0; c < cells; c++) {
        tfm_attention_grad_copy(x->a + c * d, 1.0f, d, dk + at + (ulong)c * stride);
        tfm_attention_grad_copy(x->b + c * d, 1.0f, d, dv + at + (ulong)c * stride);
    }
}

__kernel void tfm_run_attention_grad_rows(__global const uchar *q, __global const uchar *k,
                                          __global const uchar *v, __global const uchar *dy,
                                          __global const uchar *lse, __global uchar *dq,
                                          __global uchar *delta, __global uchar *workspace,
                                          __global const struct tfm_step *steps, uint index,
                                          __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    __global float *own = (__global float *)(workspace + s->at[7]);
    struct tfm_attention_grad x;
    uint n;

    tfm_attention_grad_start(&x, own, s);
    tfm_attention_grad_operands(&x.of, q, k, v, dy, own, s);
    for (uint unit = get_group_id(0);; unit += get_num_groups(0)) {
        const uint first =
            tfm_attention_grad_open(&x.of, unit, s->heads / s->kv_heads, &n, s, rows);
        if (n == 0)
            return;
        tfm_attention_grad_rows(&x, first, n, (__global const float *)(lse + s->at[4]),
                                (__global float *)(dq + s->at[5]),
                                (__global float *)(delta + s->at[6]), own + s->stats_at, s);
    }
}

__kernel void tfm_run_attention_grad_cells(__global const uchar *q, __global const uchar *k,
                                           __global const uchar *v, __global const uchar *dy,
                                           __global uchar *dk, __global uchar *dv,
                                           __global uchar *workspace,
                                           __global const struct tfm_step *steps, uint index,
                                           __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint sums = (2 * s->span + 1) * (s->heads / s->kv_heads);
    __global float *own = (__global float *)(workspace + s->at[6]);
    struct tfm_attention_grad x;
    uint n;

    tfm_attention_grad_start(&x, own, s);
    tfm_attention_grad_operands(&x.of, q, k, v, dy, own, s);
    for (uint unit = get_group_id(0);; unit += get_num_groups(0)) {
        const uint cell = tfm_attention_grad_open(&x.of, unit, 1, &n, s, rows);
        if (n == 0)
            return;
        tfm_attention_grad_cells(&x, cell, n, own + s->stats_at, (__global float *)(dk + s->at[4]),
                                 (__global float *)(dv + s->at[5]),
                                 s->partial_at ? own + s->partial_at + (ulong)unit * sums : 0, s);
    }
}
