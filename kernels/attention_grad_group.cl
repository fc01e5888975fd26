/* SPDX-License-Identifier: MIT
 * attention_grad in the group shape; attention_grad.cl has formulas, shapes and the workspace, attention_grad_units.cl
 * the units. A group has one at a time, 32 queries or 32 cells, and walks over 32 of the others after 32:
 *
 *             a: 32 of the unit       local memory: x, y [32][33], 32 columns of 32 vectors each, and s, p
 *   b = 0     [ s ]     [ p ]         [32][32]: first q . k and dy . v, 2 x 2 of them a work-item, then what the
 *   1         [   ]     [   ]         products with k, or with dy and q, are made of: 4 a of a column a work-item
 *
 * The sums of a unit wait in global memory between two tiles, each element of them with the same work-item, so that
 * head_dim is bounded by nothing; those of queries in the scratch of the group, two times [32][d].
 *
 * Work map: unit u goes to group u % groups. A sum runs over the tiles from left to right; delta is first summed by
 * the work-items that have cells of the query, so that its order depends on the size of the group too. */
#ifndef TFM_GROUP_CL
#include "group.cl"
#endif
#ifndef TFM_ATTENTION_GRAD_UNITS_CL
#include "attention_grad_units.cl"
#endif

#define TFM_AG_TILE   TFM_ATTENTION_GRAD_TILE
#define TFM_AG_HALF   (TFM_AG_TILE / 2)
#define TFM_AG_PITCH  (TFM_AG_TILE + 1) /* so that a column of a slice lies in different banks */
#define TFM_AG_PIECES (TFM_AG_TILE * TFM_AG_TILE / 4)

/* What a group works with. */
struct tfm_attention_grad_group {
    struct tfm_attention_grad_unit of;
    __local float *x, *y, *s, *p;
    __local float *base, *delta; /* of each query, [TILE]; base is lse */
};

static void tfm_attention_grad_start(struct tfm_attention_grad_group *g, __local float *cells)
{
    g->x = cells;
    g->y = g->x + TFM_AG_TILE * TFM_AG_PITCH;
    g->s = g->y + TFM_AG_TILE * TFM_AG_PITCH;
    g->p = g->s + TFM_AG_TILE * TFM_AG_TILE;
    g->base = g->p + TFM_AG_TILE * TFM_AG_TILE;
    g->delta = g->base + TFM_AG_TILE;
}

/* Columns [column, column + TILE) of n vectors, of queries or of cells, from number `first` on; what lies past them is
 * 0. to [vector][column], or turned. */
TFM_INLINE void tfm_attention_grad_take(const struct tfm_attention_grad_unit *u,
                                        __global const float *from, const int queries, uint first,
                                        uint n, uint column, const int turned, __local float *to,
                                        __global const struct tfm_step *s)
{
    const uint d = s->head_dim;

    for (uint e = (uint)get_local_id(0); e < TFM_AG_TILE * TFM_AG_TILE;
         e += (uint)get_local_size(0)) {
        const uint row = e / TFM_AG_TILE, i = e % TFM_AG_TILE;
        float value = 0.0f;
        if (row < n && column + i < d)
            value = from[(queries ? tfm_attention_grad_place(u, first + row, s) * d
                                  : tfm_attention_grad_cell(u, first + row, s)) +
                         column + i];
        to[turned ? i * TFM_AG_PITCH + row : row * TFM_AG_PITCH + i] = value;
    }
}

/* tile [b][a] = vector a of the unit times vector b of the others. queries: 1 = the unit has queries. */
TFM_INLINE void tfm_attention_grad_scores(const struct tfm_attention_grad_group *g,
                                          const int queries, __global const float *own, uint first,
                                          uint n, __global const float *others, uint other,
                                          uint count, __local float *tile,
                                          __global const struct tfm_step *s)
{
    const uint d = s->head_dim;

    for (uint piece = (uint)get_local_id(0); piece < TFM_AG_PIECES;
         piece += (uint)get_local_size(0)) {
        const uint a = piece % TFM_AG_HALF, b = piece / TFM_AG_HALF;
        float4 sum = 0.0f;
        for (uint column = 0; column < d; column += TFM_AG_TILE) {
            const uint depth = min(d - column, TFM_AG_TILE);
            tfm_attention_grad_take(&g->of, own, queries, first, n, column, 1, g->x, s);
            tfm_attention_grad_take(&g->of, others, !queries, other, count, column, 1, g->y, s);
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint k = 0; k < depth; k++) {
                __local const float *x = g->x + k * TFM_AG_PITCH + a;
                __local const float *y = g->y + k * TFM_AG_PITCH + b;
                const float x0 = x[0], x1 = x[TFM_AG_HALF], y0 = y[0], y1 = y[TFM_AG_HALF];
                sum = fma((float4)(x0, x1, x0, x1), (float4)(y0, y0, y1, y1), sum);
            }
            barrier(CLK_LOCAL_MEM_FENCE); /* before the next columns come */
        }
        tile[b * TFM_AG_TILE + a] = sum.x;
        tile[b * TFM_AG_TILE + a + TFM_AG_HALF] = sum.y;
        tile[(b + TFM_AG_HALF) * TFM_AG_TILE + a] = sum.z;
        tile[(b + TFM_AG_HALF) * TFM_AG_TILE + a + TFM_AG_HALF] = sum.w;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Four a of one column: to (+)= tile [b][a..a+3] times slice [b][i] over b. */
static void tfm_attention_grad_column(__global float *to, ulong stride, uint left, int begun,
                                      __local const float *tile, __local const float *slice,
                                      uint count)
{
    float each[4] = {0.0f, 0.0f, 0.0f, 0.0f};

    for (uint t = 0; begun && t < left; t++)
        each[t] = to[t * stride];
    float4 sum = vload4(0, each);
    for (uint b = 0; b < count; b++)
        sum = fma(vload4(0, tile + b * TFM_AG_TILE), (float4)(slice[b * TFM_AG_PITCH]), sum);
    vstore4(sum, 0, each);
    for (uint t = 0; t < left; t++)
        to[t * stride] = each[t];
}

/* to_p [a] (+)= p [b][a] times vector b of from_p, to_s the same with s and from_s; n rows of `stride`. Other work is
 * done on s and p before, and after, a barrier here. */
TFM_INLINE void tfm_attention_grad_add(const struct tfm_attention_grad_group *g, const int queries,
                                       __global const float *from_p, __global const float *from_s,
                                       uint other, uint count, __global float *to_p,
                                       __global float *to_s, ulong stride, uint n, int begun,
                                       __global const struct tfm_step *s)
{
    const uint d = s->head_dim;

    for (uint column = 0; column < d; column += TFM_AG_TILE) {
        tfm_attention_grad_take(&g->of, from_p, !queries, other, count, column, 0, g->x, s);
        if (!queries) /* both from k otherwise */
            tfm_attention_grad_take(&g->of, from_s, !queries, other, count, column, 0, g->y, s);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint piece = (uint)get_local_id(0); piece < TFM_AG_PIECES;
             piece += (uint)get_local_size(0)) {
            const uint i = piece % TFM_AG_TILE, a = piece / TFM_AG_TILE * 4;
            const ulong at = a * stride + column + i;
            if (a >= n || column + i >= d)
                continue;
            const uint left = min(n - a, 4u);
            tfm_attention_grad_column(to_p + at, stride, left, begun, g->p + a, g->x + i, count);
            tfm_attention_grad_column(to_s + at, stride, left, begun, g->s + a,
                                      (queries ? g->x : g->y) + i, count);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

/* P of a query and a cell from q . k; slope: what the gradient of the product shrinks by. */
static float tfm_attention_grad_weight(const struct tfm_attention_grad_unit *u, uint number,
                                       uint cell, float product, float base, float *slope,
                                       __global const struct tfm_step *s)
{
    const uint share = s->heads / s->kv_heads;
    const int own = (int)(number / share);
    const int2 sight = tfm_attention_grad_sight(u, own, s);
    float score = product * s->scale;

    *slope = 1.0f;
    if ((int)cell < sight.x || (int)cell >= sight.y)
        return 0.0f;
    if (s->softcap > 0.0f) {
        const float bent = tanh(score / s->softcap);
        *slope = 1.0f - bent * bent;
        score = s->softcap * bent;
    }
    if (u->bias)
        score += tfm_attention_grad_bias(u, (int)cell - own, u->group * share + number % share, s);
    return base == -INFINITY ? 0.0f : exp(score - base); /* what saw nothing weighs nothing */
}

/* ---- a unit of queries ---- */

/* s and p of queries first + a and cells cell + b: from q . k and dP to P slope and P dP slope; adds up delta. */
static void tfm_attention_grad_weigh_rows(const struct tfm_attention_grad_group *g, uint first,
                                          uint n, uint cell, uint cells,
                                          __global const struct tfm_step *s)
{
    const uint me = (uint)get_local_id(0), size = (uint)get_local_size(0);
    const uint lanes =
        min(size, TFM_AG_TILE); /* work-items side by side have queries side by side */

    for (uint a = me % lanes; a < TFM_AG_TILE; a += lanes) {
        float sum = 0.0f;
        for (uint b = me / lanes; b < cells; b += size / lanes) {
            const uint at = b * TFM_AG_TILE + a;
            float slope = 1.0f, weight = 0.0f, both = 0.0f;
            if (a < n)
                weight = tfm_attention_grad_weight(&g->of, first + a, cell + b, g->s[at],
                                                   g->base[a], &slope, s);
            if (weight != 0.0f)
                both = weight * g->p[at];
            sum += both;
            g->s[at] = weight * slope;
            g->p[at] = both * slope;
        }
        g->x[me / lanes * TFM_AG_TILE + a] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint a = me; a < TFM_AG_TILE; a += size) {
        for (uint i = 0; i < size / lanes; i++)
            g->delta[a] += g->x[i * TFM_AG_TILE + a];
    }
    barrier(CLK_LOCAL_MEM_FENCE); /* before x is written again */
}

/* sums [2][TILE][d] of the group: with P dP and with P. */
static void tfm_attention_grad_rows(const struct tfm_attention_grad_group *g, uint first, uint n,
                                    __global const float *lse, __global float *dq,
                                    __global float *delta, __global float *stats,
                                    __global float *sums, __global const struct tfm_step *s)
{
    const uint me = (uint)get_local_id(0), size = (uint)get_local_size(0);
    const uint d = s->head_dim, share = s->heads / s->kv_heads;
    const uint begin = (uint)tfm_attention_grad_sight(&g->of, (int)(first / share), s).x;
    const uint end = (uint)tfm_attention_grad_sight(&g->of, (int)((first + n - 1) / share), s).y;
    __global float *other = sums + TFM_AG_TILE * d;

    for (uint a = me; a < TFM_AG_TILE; a += size) {
        g->base[a] = a < n ? lse[tfm_attention_grad_place(&g->of, first + a, s)] : 0.0f;
        g->delta[a] = 0.0f;
    }
    for (uint cell = begin; cell < end; cell += TFM_AG_TILE) {
        const uint cells = min(end - cell, TFM_AG_TILE);
        tfm_attention_grad_scores(g, 1, g->of.q, first, n, g->of.k, cell, cells, g->s, s);
        tfm_attention_grad_scores(g, 1, g->of.dy, first, n, g->of.v, cell, cells, g->p, s);
        tfm_attention_grad_weigh_rows(g, first, n, cell, cells, s);
        tfm_attention_grad_add(g, 1, g->of.k, g->of.k, cell, cells, sums, other, d, n, cell > begin,
                               s);
    }
    for (uint column = 0; column < d; column += TFM_AG_TILE) {
        for (uint piece = me; piece < TFM_AG_PIECES; piece += size) { /* as in add: its own sums */
            const uint i = column + piece % TFM_AG_TILE, four = piece / TFM_AG_TILE * 4;
            for (uint a = four; a < min(four + 4, n) && i < d; a++)
                dq[tfm_attention_grad_place(&g->of, first + a, s) * d + i] =
                    s->scale * fma(-g->delta[a], other[a * d + i], sums[a * d + i]);
        }
    }
    for (uint a = me; a < n; a += size) {
        const ulong place = tfm_attention_grad_place(&g->of, first + a, s);
        delta[place] = stats[2 * place + 1] = g->delta[a];
        stats[2 * place] = g->base[a];
    }
    barrier(CLK_LOCAL_MEM_FENCE); /* before base and delta are those of the next unit */
}

__kernel void tfm_run_attention_grad_rows_group(__global const uchar *q, __global const uchar *k,
                                                __global const uchar *v, __global const uchar *dy,
                                                __global const uchar *lse, __global uchar *dq,
                                                __global uchar *delta, __global uchar *workspace,
                                                __global const struct tfm_step *steps, uint index,
                                                __global const int *rows, __local float *cells)
{
    __global const struct tfm_step *s = steps + index;
    __global float *own = (__global float *)(workspace + s->at[7]);
    const uint share = s->heads / s->kv_heads;
    struct tfm_attention_grad_group g;
    uint unit = (uint)get_group_id(0), n;

    tfm_attention_grad_start(&g, cells);
    tfm_attention_grad_operands(&g.of, q, k, v, dy, own, s);
    uint first = tfm_attention_grad_open(&g.of, unit, share, &n, s, rows);
    while (n > 0) {
        tfm_attention_grad_rows(&g, first, n, (__global const float *)(lse + s->at[4]),
                                (__global float *)(dq + s->at[5]),
                                (__global float *)(delta + s->at[6]), own + s->stats_at,
                                own + (ulong)get_group_id(0) * s->scratch, s);
        unit += (uint)get_num_groups(0);
        first = tfm_attention_grad_open(&g.of, unit, share, &n, s, rows);
    }
}

/* ---- a unit of cells ---- */

/* s and p of cells cell + a and queries first + b: from q . k and dP to P and dS slope scale; ds: also dS to y. */
static void tfm_attention_grad_weigh_cells(const struct tfm_attention_grad_group *g, uint cell,
                                           uint cells, uint first, uint n, int ds,
                                           __global const struct tfm_step *s)
{
    for (uint at = (uint)get_local_id(0); at < n * TFM_AG_TILE; at += (uint)get_local_size(0)) {
        const uint a = at % TFM_AG_TILE, b = at / TFM_AG_TILE;
        float slope = 1.0f, weight = 0.0f, change = 0.0f;
        if (a < cells)
            weight = tfm_attention_grad_weight(&g->of, first + b, cell + a, g->s[at], g->base[b],
                                               &slope, s);
        if (weight != 0.0f)
            change = weight * (g->p[at] - g->delta[b]);
        g->s[at] = weight;
        g->p[at] = change * slope * s->scale;
        if (ds)
            g->y[at] = change;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* Adds dS in y to sums [2 M + 1][H/G]. A place of it belongs to one work-item and has of each query one cell, but the
 * first and the last have all that lie beyond: those are summed first, into x [query][2]. */
static void tfm_attention_grad_distances(const struct tfm_attention_grad_group *g, uint cell,
                                         uint cells, uint first, uint n, __global float *sums,
                                         __global const struct tfm_step *s)
{
    const uint me = (uint)get_local_id(0), size = (uint)get_local_size(0);
    const uint share = s->heads / s->kv_heads;
    const int span = (int)s->span;

    for (uint i = me; i < 2 * n; i += size) {
        const uint b = i / 2;
        const int own = (int)((first + b) / share), edge = i % 2 ? span : -span;
        float sum = 0.0f;
        for (uint a = 0; a < cells; a++) {
            if (clamp((int)(cell + a) - own, -span, span) == edge)
                sum += g->y[b * TFM_AG_TILE + a];
        }
        g->x[i] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int nearest = (int)cell - (int)((first + n - 1) / share);
    const int farthest = (int)(cell + cells - 1) - (int)(first / share);
    const uint begin = (uint)(clamp(nearest, -span, span) + span) * share;
    const uint end = (uint)(clamp(farthest, -span, span) + span + 1) * share;
    for (uint i = begin + ((me - begin) & (size - 1)); i < end; i += size) { /* i % size == me */
        const int at = (int)(i / share) - span;
        float sum = 0.0f;
        for (uint b = (i % share + share - first % share) % share; b < n; b += share) {
            const int a = at + (int)((first + b) / share) - (int)cell;
            if (at == -span || at == span)
                sum += g->x[2 * b + (at > -span)];
            else if (a >= 0 && a < (int)cells)
                sum += g->y[b * TFM_AG_TILE + (uint)a];
        }
        sums[i] += sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE); /* before x and y are written again */
}

/* sums: 0 = no gradient of the bias. */
static void tfm_attention_grad_cells(const struct tfm_attention_grad_group *g, uint cell,
                                     uint cells, __global const float *stats, __global float *dk,
                                     __global float *dv, __global float *sums,
                                     __global const struct tfm_step *s)
{
    const uint me = (uint)get_local_id(0), size = (uint)get_local_size(0);
    const uint share = s->heads / s->kv_heads;
    const ulong at = tfm_attention_grad_cell(&g->of, cell, s), stride = s->kv_heads * s->head_dim;
    const uint2 seers = tfm_attention_grad_seers(&g->of, cell, cell + cells - 1, s);

    for (uint i = me; sums && i < (2 * s->span + 1) * share; i += size)
        sums[i] = 0.0f; /* its own, as in distances */
    for (uint first = seers.x * share; first < seers.y * share; first += TFM_AG_TILE) {
        const uint n = min(seers.y * share - first, TFM_AG_TILE);
        for (uint b = me; b < n; b += size) {
            const ulong place = tfm_attention_grad_place(&g->of, first + b, s);
            g->base[b] = stats[2 * place];
            g->delta[b] = stats[2 * place + 1];
        }
        tfm_attention_grad_scores(g, 0, g->of.k, cell, cells, g->of.q, first, n, g->s, s);
        tfm_attention_grad_scores(g, 0, g->of.v, cell, cells, g->of.dy, first, n, g->p, s);
        tfm_attention_grad_weigh_cells(g, cell, cells, first, n, sums != 0, s);
        if (sums)
            tfm_attention_grad_distances(g, cell, cells, first, n, sums, s);
        tfm_attention_grad_add(g, 0, g->of.q, g->of.dy, first, n, dk + at, dv + at, stride, cells,
                               first > seers.x * share, s);
    }
}

__kernel void tfm_run_attention_grad_cells_group(__global const uchar *q, __global const uchar *k,
                                                 __global const uchar *v, __global const uchar *dy,
                                                 __global uchar *dk, __global uchar *dv,
                                                 __global uchar *workspace,
                                                 __global const struct tfm_step *steps, uint index,
                                                 __global const int *rows, __local float *cells)
{
    __global const struct tfm_step *s = steps + index;
    const uint sums = (2 * s->span + 1) * (s->heads / s->kv_heads);
    __global float *own = (__global float *)(workspace + s->at[6]);
    struct tfm_attention_grad_group g;
    uint unit = (uint)get_group_id(0), n;

    tfm_attention_grad_start(&g, cells);
    tfm_attention_grad_operands(&g.of, q, k, v, dy, own, s);
    uint cell = tfm_attention_grad_open(&g.of, unit, 1, &n, s, rows);
    while (n > 0) {
        tfm_attention_grad_cells(&g, cell, n, own + s->stats_at, (__global float *)(dk + s->at[4]),
                                 (__global float *)(dv + s->at[5]),
                                 s->partial_at ? own + s->partial_at + (ulong)unit * sums : 0, s);
        unit += (uint)get_num_groups(0);
        cell = tfm_attention_grad_open(&g.of, unit, 1, &n, s, rows);
    }
}
