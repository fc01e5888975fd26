/* SPDX-License-Identifier: MIT
 * attention_grad: gradients of attention without caches; no matrix of rows times cells exists
 *   q, dy, dq [N, H, d], k, v, dk, dv [N, G, d], lse, delta [N, H] F32, cell c of a sequence = its row c
 *   P = exp(score - lse), dP = dy . v, delta = sum over cells of P dP, dS = P (dP - delta), through the cap
 *   dS (1 - t^2) with t = tanh(q . k scale / softcap);  scores, masks and bias as in gqa_attention.cl
 *   dq = sum of dS k scale,  dk = sum of dS q scale,  dv = sum of P dy
 * In the workspace of a launch, after the scratch of the parts:
 *   bias [2 M + 1][H]: rel_bias by distance; partial [units of cells][2 M + 1][H/G]: sums of dS by distance
 *
 *               64 cells  64 cells              a tile of 64 queries (rows times the H/G heads of a kv head) goes over
 *   64 queries  [ P dP ]  [ P dP ]  -> delta    its cells twice: for P, dP and delta, which the second time become dS
 *               [ dS   ]  [ dS   ]  -> dq       and the sums. P and dP of up to `kept` cells wait in between; where
 *                v         v                    there are more, all are computed again.
 *                dk, dv    dk, dv
 *
 * A launch makes the sums of rows, of cells, or both; those of cells alone take delta from an earlier one of rows.
 *
 * Work map: a unit is 64 queries, or 64 cells of a kv head, or for both sums a sequence and kv head. Unit u goes to
 * part u % parts; a part has `scratch` floats to itself. Tiles begin at multiples of 64, and a sum runs over them from
 * left to right, so that it is the same in both ways. */
#ifndef TFM_ATTENTION_GRAD_TILE_CL
#include "attention_grad_tile.cl"
#endif

/* Where the sums of a unit go. */
struct tfm_attention_grad_results {
    __global float *dq, *delta, *dk, *dv;
    __global float *partial; /* of cell 0 of the sequence; 0 = the bias has no gradient */
};

static void tfm_attention_grad_start(struct tfm_attention_grad *x, __global float *workspace,
                                     __global const struct tfm_step *s)
{
    const uint wide = (s->head_dim + TFM_AG_WIDTH - 1) / TFM_AG_WIDTH * TFM_AG_WIDTH;
    const uint vectors = TFM_ATTENTION_GRAD_TILE * wide, strip = s->kept * TFM_ATTENTION_GRAD_TILE;

    x->wide = wide;
    x->plain = !x->of.bias && s->softcap <= 0.0f;
    x->queries = workspace + (ulong)get_group_id(0) * s->scratch;
    x->slopes = x->queries + vectors;
    x->turned_queries = x->slopes + vectors;
    x->turned_slopes = x->turned_queries + vectors;
    x->keys = x->turned_slopes + vectors;
    x->sum = x->keys + vectors;
    x->weights = x->sum + vectors;
    x->changes = x->weights + strip;
    x->bends = x->changes + strip;
}

/* P and dP of cells [cell, cell + cells), to place `at`. */
static void tfm_attention_grad_first(struct tfm_attention_grad *x, uint cell, uint cells, uint at,
                                     __global const struct tfm_step *s)
{
    const uint d = s->head_dim, stride = s->kv_heads * d;

    for (uint c = 0; c < cells; c += TFM_AG_BAND) {
        const uint last = min(cells - c, TFM_AG_BAND) - 1;
        const uint2 queries = tfm_attention_grad_onlookers(x, cell + c, cell + c + last, s);
        const ulong from = tfm_attention_grad_cell(&x->of, cell + c, s);
        const uint to = (at + c) * TFM_ATTENTION_GRAD_TILE;
        tfm_attention_grad_score(x->of.k + from, stride, last, x->turned_queries, d, queries,
                                 x->weights + to);
        tfm_attention_grad_score(x->of.v + from, stride, last, x->turned_slopes, d, queries,
                                 x->changes + to);
        tfm_attention_grad_weigh(x, cell + c, last, at + c, queries, s);
    }
}

/* From there the sums. */
static void tfm_attention_grad_second(struct tfm_attention_grad *x,
                                      const struct tfm_attention_grad_results *r, uint cell,
                                      uint cells, uint at, __global const struct tfm_step *s)
{
    const uint d = s->head_dim, stride = s->kv_heads * d;
    const ulong from = tfm_attention_grad_cell(&x->of, cell, s);
    const uint distances = (2 * s->span + 1) * (s->heads / s->kv_heads);
    __global float *partial =
        r->partial && (s->sums & TFM_SUMS_CELLS)
            ? r->partial + (ulong)(cell / TFM_ATTENTION_GRAD_TILE * s->kv_heads) * distances
            : 0;

    for (uint c = 0; c < cells; c += TFM_AG_BAND) {
        const uint last = min(cells - c, TFM_AG_BAND) - 1;
        const uint2 queries = tfm_attention_grad_onlookers(x, cell + c, cell + c + last, s);
        const ulong to = from + (ulong)c * stride;
        __global const float *weights = x->weights + (at + c) * TFM_ATTENTION_GRAD_TILE;
        __global const float *changes = x->changes + (at + c) * TFM_ATTENTION_GRAD_TILE;
        tfm_attention_grad_change(x, last, at + c, queries);
        if (partial)
            tfm_attention_grad_count(x, cell + c, last, at + c, queries, partial, s);
        if (s->softcap > 0.0f)
            tfm_attention_grad_bend(x, last, at + c, queries);
        if (s->sums & TFM_SUMS_CELLS) {
            tfm_attention_grad_to_cells(x, changes, last, x->queries, queries, r->dk + to, s);
            tfm_attention_grad_to_cells(x, weights, last, x->slopes, queries, r->dv + to, s);
        }
    }
    if (s->sums & TFM_SUMS_ROWS) {
        for (uint c = 0; c < cells; c++)
            tfm_attention_grad_copy(x->of.k + from + (ulong)c * stride, 1.0f, d, x->wide,
                                    x->keys + c * x->wide);
        tfm_attention_grad_to_queries(x, cell, cells, at);
    }
}

/* Queries [first, first + n) and those of the cells [from, to) that they see; from is a multiple of TILE. */
static void tfm_attention_grad_queries(struct tfm_attention_grad *x,
                                       const struct tfm_attention_grad_results *r, uint first,
                                       uint n, uint from, uint to,
                                       __global const struct tfm_step *s)
{
    const uint tile = TFM_ATTENTION_GRAD_TILE;
    const int rows = s->sums & TFM_SUMS_ROWS;

    tfm_attention_grad_take(x, first, n, s);
    from = max(from, (uint)x->begin[0] / tile * tile);
    to = min(to, (uint)x->end[n - 1]); /* what queries see only grows from one to the next */
    const int kept = rows && to - from <= s->kept;
    if (rows)
        tfm_attention_grad_clear(x->sum, n * x->wide);
    for (int sums = !rows; sums < 2; sums++) {
        for (uint j = 0; j < n && sums; j++) {
            __global float *delta = r->delta + tfm_attention_grad_place(&x->of, first + j, s);
            if (rows)
                *delta = x->total[j];
            x->delta[j] = *delta;
        }
        for (uint cell = from; cell < to; cell += tile) {
            const uint cells = min(to - cell, tile), at = kept ? cell - from : 0;
            if (!sums || !kept)
                tfm_attention_grad_first(x, cell, cells, at, s);
            if (sums)
                tfm_attention_grad_second(x, r, cell, cells, at, s);
        }
    }
    for (uint j = 0; j < n && rows; j++) {
        __global float *dq = r->dq + tfm_attention_grad_place(&x->of, first + j, s) * s->head_dim;
        for (uint i = 0; i < s->head_dim; i += 16)
            tfm_storev_n(vload16(0, x->sum + j * x->wide + i) * s->scale, (__global uchar *)dq, i,
                         min(s->head_dim - i, 16u), TFM_STEP_F32);
    }
}

/* Starts the sums of cells [cell, end). */
static void tfm_attention_grad_empty(const struct tfm_attention_grad *x,
                                     const struct tfm_attention_grad_results *r, uint cell,
                                     uint end, __global const struct tfm_step *s)
{
    const uint d = s->head_dim, tile = TFM_ATTENTION_GRAD_TILE;
    const uint distances = (2 * s->span + 1) * (s->heads / s->kv_heads);

    for (uint c = cell; c < end; c++) {
        const ulong at = tfm_attention_grad_cell(&x->of, c, s);
        tfm_attention_grad_clear(r->dk + at, d);
        tfm_attention_grad_clear(r->dv + at, d);
        if (r->partial && c % tile == 0)
            tfm_attention_grad_clear(r->partial + (ulong)(c / tile * s->kv_heads) * distances,
                                     distances);
    }
}

/* A unit: n queries from `first` on and all cells, or so many cells and the queries that see them. */
static void tfm_attention_grad_unit(struct tfm_attention_grad *x,
                                    const struct tfm_attention_grad_results *r, uint first, uint n,
                                    __global const struct tfm_step *s)
{
    const uint share = s->heads / s->kv_heads, tile = TFM_ATTENTION_GRAD_TILE;
    uint2 queries = (uint2)(first, first + n), cells = (uint2)(0, x->of.all);

    if (s->sums != TFM_SUMS_ROWS) {
        cells = queries;
        queries = tfm_attention_grad_seers(&x->of, cells.x, cells.y - 1, s) * share;
        tfm_attention_grad_empty(x, r, cells.x, cells.y, s);
    }
    for (uint q = queries.x / tile * tile; q < queries.y; q += tile)
        tfm_attention_grad_queries(x, r, q, min(x->of.all * share - q, tile), cells.x, cells.y, s);
}

__kernel void tfm_run_attention_grad(__global const uchar *q, __global const uchar *k,
                                     __global const uchar *v, __global const uchar *dy,
                                     __global const uchar *lse, __global uchar *dq,
                                     __global uchar *delta, __global uchar *dk, __global uchar *dv,
                                     __global uchar *workspace,
                                     __global const struct tfm_step *steps, uint index,
                                     __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint share = s->heads / s->kv_heads, distances = (2 * s->span + 1) * share;
    __global float *own = (__global float *)(workspace + s->at[9]);
    const struct tfm_attention_grad_results results = {
        (__global float *)(dq + s->at[5]), (__global float *)(delta + s->at[6]),
        (__global float *)(dk + s->at[7]), (__global float *)(dv + s->at[8]), 0};
    struct tfm_attention_grad x;
    uint n;

    tfm_attention_grad_operands(&x.of, q, k, v, dy, lse, own, s);
    tfm_attention_grad_start(&x, own, s);
    for (uint unit = get_group_id(0);; unit += get_num_groups(0)) {
        struct tfm_attention_grad_results r = results;
        const uint first = tfm_attention_grad_open(&x.of, unit,
                                                   s->sums == TFM_SUMS_ROWS    ? share
                                                   : s->sums == TFM_SUMS_CELLS ? 1
                                                                               : 0,
                                                   &n, s, rows);
        if (n == 0)
            return;
        if (s->partial_at)
            r.partial =
                own + s->partial_at + (ulong)(x.of.tiles * s->kv_heads + x.of.group) * distances;
        tfm_attention_grad_unit(&x, &r, first, n, s);
    }
}
