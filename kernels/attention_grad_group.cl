/* SPDX-License-Identifier: MIT
 * attention_grad in the group shape; attention_grad.cl has formulas, shapes and the workspace, attention_grad_units.cl
 * the units. A group has one at a time, 32 queries or 32 cells, and walks over 32 of the others after 32:
 *
 *             a: 32 of the unit       local memory: x, y [32][33], 32 columns of 32 vectors each, and s, p
 *   b = 0     [ s ]     [ p ]         [32][32]: first q . k and dy . v, 2 x 2 of them a work-item, then what the
 *   1         [   ]     [   ]         products with k, or with dy and q, are made of: 4 a of a column a work-item
 *
 * The sums of a unit wait in global memory between two tiles, each element of them with the same work-item, so that
 * head_dim is bounded by nothing; two times [32][d] in the scratch of the group.
 *
 * Work map: unit u goes to group u % groups. A sum runs over the tiles from left to right; delta is first summed by
 * the work-items that have cells of the query, so that its order depends on the size of the group too. */
#ifndef TFM_GROUP_CL
#include "group.cl"
#endif
#ifndef TFM_ATTENTION_GRAD_UNITS_CL
#include "attention_grad_units.cl"
#endif

#ifndef TFM_ATTENTION_GRAD_DISTANCES
#define TFM_ATTENTION_GRAD_DISTANCES 0 /* 1 = the relative bias has a gradient */
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

/* Vectors of queries, or of cells, from number `first` on. */
struct tfm_attention_grad_vectors {
    __global const float *from;
    int queries;
    uint first, n;
};

/* Columns [column, column + TILE) of vectors x and, if sides is 2, y to the slices of these names, [vector][column] or
 * turned; what lies past them is 0. */
static void tfm_attention_grad_take(const struct tfm_attention_grad_group *g,
                                    const struct tfm_attention_grad_vectors *x,
                                    const struct tfm_attention_grad_vectors *y, uint sides,
                                    uint column, int turned, __global const struct tfm_step *s)
{
    const uint d = s->head_dim, tile = TFM_AG_TILE * TFM_AG_TILE;

    for (uint e = (uint)get_local_id(0); e < sides * tile; e += (uint)get_local_size(0)) {
        const uint side = e / tile, row = e / TFM_AG_TILE % TFM_AG_TILE, i = e % TFM_AG_TILE;
        __global const float *from = side ? y->from : x->from;
        const uint number = (side ? y->first : x->first) + row, n = side ? y->n : x->n;
        float value = 0.0f;
        if (row < n && column + i < d)
            value = from[((side ? y->queries : x->queries)
                              ? tfm_attention_grad_place(&g->of, number, s) * d
                              : tfm_attention_grad_cell(&g->of, number, s)) +
                         column + i];
        g->x[side * TFM_AG_TILE * TFM_AG_PITCH +
             (turned ? i * TFM_AG_PITCH + row : row * TFM_AG_PITCH + i)] = value;
    }
}

/* s [b][a] = q . k and p [b][a] = dy . v for vectors a of the unit and b of the others. queries: 1 = the unit has
 * queries. */
static void tfm_attention_grad_scores(const struct tfm_attention_grad_group *g, int queries,
                                      uint first, uint n, uint other, uint count,
                                      __global const struct tfm_step *s)
{
    const uint d = s->head_dim;

    for (uint piece = (uint)get_local_id(0); piece < 2 * TFM_AG_PIECES;
         piece += (uint)get_local_size(0)) {
        const uint a = piece % TFM_AG_HALF, b = piece / TFM_AG_HALF % TFM_AG_HALF;
        const int which = piece >= TFM_AG_PIECES; /* the same for the whole group */
        __global const float *query = which ? g->of.dy : g->of.q;
        __global const float *cell = which ? g->of.v : g->of.k;
        const struct tfm_attention_grad_vectors x = {queries ? query : cell, queries, first, n};
        const struct tfm_attention_grad_vectors y = {queries ? cell : query, !queries, other,
                                                     count};
        __local float *to = (which ? g->p : g->s) + b * TFM_AG_TILE + a;
        float4 sum = 0.0f;
        for (uint column = 0; column < d; column += TFM_AG_TILE) {
            const uint depth = min(d - column, TFM_AG_TILE);
            tfm_attention_grad_take(g, &x, &y, 2, column, 1, s);
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint k = 0; k < depth; k++) {
                __local const float *left = g->x + k * TFM_AG_PITCH + a;
                __local const float *right = g->y + k * TFM_AG_PITCH + b;
                const float4 of_a =
                    (float4)(left[0], left[TFM_AG_HALF], left[0], left[TFM_AG_HALF]);
                const float4 of_b =
                    (float4)(right[0], right[0], right[TFM_AG_HALF], right[TFM_AG_HALF]);
                sum = fma(of_a, of_b, sum);
            }
            barrier(CLK_LOCAL_MEM_FENCE); /* before the next columns come */
        }
        to[0] = sum.x;
        to[TFM_AG_HALF] = sum.y;
        to[TFM_AG_HALF * TFM_AG_TILE] = sum.z;
        to[TFM_AG_HALF * TFM_AG_TILE + TFM_AG_HALF] = sum.w;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* sums [2][TILE][d]: p [b][a] times vector b of x is added to a of the first, or stored when nothing has begun; s and y
 * to the second, or x again. Their work-items before and after are parted by a barrier here. */
static void tfm_attention_grad_add(const struct tfm_attention_grad_group *g,
                                   const struct tfm_attention_grad_vectors *x,
                                   const struct tfm_attention_grad_vectors *y, uint sides,
                                   __global float *sums, int begun,
                                   __global const struct tfm_step *s)
{
    const uint d = s->head_dim;

    for (uint column = 0; column < d; column += TFM_AG_TILE) {
        tfm_attention_grad_take(g, x, y, sides, column, 0, s);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint piece = (uint)get_local_id(0); piece < 2 * TFM_AG_PIECES;
             piece += (uint)get_local_size(0)) {
            const uint i = piece % TFM_AG_TILE, a = piece % TFM_AG_PIECES / TFM_AG_TILE * 4;
            const int second = piece >= TFM_AG_PIECES;
            __local const float *tile = (second ? g->s : g->p) + a;
            __local const float *slice = (second && sides > 1 ? g->y : g->x) + i;
            __global float *to = sums + ((second ? TFM_AG_TILE : 0u) + a) * d + column + i;
            if (column + i >= d)
                continue;
            float4 sum = begun ? (float4)(to[0], to[d], to[2 * d], to[3 * d]) : (float4)(0.0f);
            for (uint b = 0; b < x->n; b++)
                sum =
                    fma(vload4(0, tile + b * TFM_AG_TILE), (float4)(slice[b * TFM_AG_PITCH]), sum);
            to[0] = sum.x;
            to[d] = sum.y;
            to[2 * d] = sum.z;
            to[3 * d] = sum.w;
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

/* sums [2][TILE][d]: with P dP and with P. */
static void tfm_attention_grad_rows(const struct tfm_attention_grad_group *g, uint first, uint n,
                                    __global float *dq, __global float *delta, __global float *sums,
                                    __global const struct tfm_step *s)
{
    const uint me = (uint)get_local_id(0), size = (uint)get_local_size(0);
    const uint d = s->head_dim, share = s->heads / s->kv_heads;
    const uint begin = (uint)tfm_attention_grad_sight(&g->of, (int)(first / share), s).x;
    const uint end = (uint)tfm_attention_grad_sight(&g->of, (int)((first + n - 1) / share), s).y;
    __global float *other = sums + TFM_AG_TILE * d;

    for (uint a = me; a < TFM_AG_TILE; a += size) {
        g->base[a] = a < n ? g->of.lse[tfm_attention_grad_place(&g->of, first + a, s)] : 0.0f;
        g->delta[a] = 0.0f;
    }
    for (uint cell = begin; cell < end; cell += TFM_AG_TILE) {
        const uint cells = min(end - cell, TFM_AG_TILE);
        const struct tfm_attention_grad_vectors k = {g->of.k, 0, cell, cells};
        tfm_attention_grad_scores(g, 1, first, n, cell, cells, s);
        tfm_attention_grad_weigh_rows(g, first, n, cell, cells, s);
        tfm_attention_grad_add(g, &k, &k, 1, sums, cell > begin, s);
    }
    for (uint column = 0; column < d; column += TFM_AG_TILE) {
        for (uint piece = me; piece < TFM_AG_PIECES; piece += size) { /* as in add: its own sums */
            const uint i = column + piece % TFM_AG_TILE, four = piece / TFM_AG_TILE * 4;
            for (uint a = four; a < min(four + 4, n) && i < d; a++)
                dq[tfm_attention_grad_place(&g->of, first + a, s) * d + i] =
                    s->scale * fma(-g->delta[a], other[a * d + i], sums[a * d + i]);
        }
    }
    for (uint a = me; a < n; a += size)
        delta[tfm_attention_grad_place(&g->of, first + a, s)] = g->delta[a];
    barrier(CLK_LOCAL_MEM_FENCE); /* before base and delta are those of the next unit */
}

__kernel void tfm_run_attention_grad_rows_group(__global const uchar *q, __global const uchar *k,
                                                __global const uchar *v, __global const uchar *dy,
                                                __global const uchar *lse, __global uchar *dq,
                                                __global uchar *delta, __global uchar *dk,
                                                __global uchar *dv, __global uchar *workspace,
                                                __global const struct tfm_step *steps, uint index,
                                                __global const int *rows, __local float *cells)
{
    __global const struct tfm_step *s = steps + index;
    __global float *own = (__global float *)(workspace + s->at[9]);
    const uint share = s->heads / s->kv_heads;
    struct tfm_attention_grad_group g;
    uint unit = (uint)get_group_id(0), n;

    (void)dk;
    (void)dv;
    tfm_attention_grad_start(&g, cells);
    tfm_attention_grad_operands(&g.of, q, k, v, dy, lse, own, s);
    uint first = tfm_attention_grad_open(&g.of, unit, share, &n, s, rows);
    while (n > 0) {
        tfm_attention_grad_rows(&g, first, n, (__global float *)(dq + s->at[5]),
                                (__global float *)(delta + s->at[6]),
                                own + (ulong)get_group_id(0) * s->scratch, s);
        unit += (uint)get_num_groups(0);
        first = tfm_attention_grad_open(&g.of, unit, share, &n, s, rows);
    }
}

/* ---- a unit of cells ---- */

/* s and p of cells cell + a and queries first + b: from q . k and dP to P and dS slope scale; where distances
 * count, also dS to y. */
static void tfm_attention_grad_weigh_cells(const struct tfm_attention_grad_group *g, uint cell,
                                           uint cells, uint first, uint n,
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
        if (TFM_ATTENTION_GRAD_DISTANCES)
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

/* sums [2][TILE][d]: dk and dv. distances: 0 = no gradient of the bias. */
static void tfm_attention_grad_cells(const struct tfm_attention_grad_group *g, uint cell,
                                     uint cells, __global const float *delta, __global float *dk,
                                     __global float *dv, __global float *sums,
                                     __global float *distances, __global const struct tfm_step *s)
{
    const uint me = (uint)get_local_id(0), size = (uint)get_local_size(0), d = s->head_dim;
    __global float *other = sums + TFM_AG_TILE * d;
    const uint share = s->heads / s->kv_heads;
    const ulong at = tfm_attention_grad_cell(&g->of, cell, s), stride = s->kv_heads * s->head_dim;
    const uint2 seers = tfm_attention_grad_seers(&g->of, cell, cell + cells - 1, s);

    for (uint i = me; TFM_ATTENTION_GRAD_DISTANCES && i < (2 * s->span + 1) * share; i += size)
        distances[i] = 0.0f; /* its own, as in the function of that name */
    for (uint first = seers.x * share; first < seers.y * share; first += TFM_AG_TILE) {
        const uint n = min(seers.y * share - first, TFM_AG_TILE);
        for (uint b = me; b < n; b += size) {
            const ulong place = tfm_attention_grad_place(&g->of, first + b, s);
            g->base[b] = g->of.lse[place];
            g->delta[b] = delta[place];
        }
        const struct tfm_attention_grad_vectors q = {g->of.q, 1, first, n};
        const struct tfm_attention_grad_vectors dy = {g->of.dy, 1, first, n};
        tfm_attention_grad_scores(g, 0, cell, cells, first, n, s);
        tfm_attention_grad_weigh_cells(g, cell, cells, first, n, s);
        if (TFM_ATTENTION_GRAD_DISTANCES)
            tfm_attention_grad_distances(g, cell, cells, first, n, distances, s);
        tfm_attention_grad_add(g, &q, &dy, 2, sums, first > seers.x * share, s);
    }
    for (uint column = 0; column < d; column += TFM_AG_TILE) {
        for (uint piece = me; piece < TFM_AG_PIECES; piece += size) { /* as in add: its own sums */
            const uint i = column + piece % TFM_AG_TILE, four = piece / TFM_AG_TILE * 4;
            for (uint a = four; a < min(four + 4, cells) && i < d; a++) {
                dk[at + a * stride + i] = sums[a * d + i];
                dv[at + a * stride + i] = other[a * d + i];
            }
        }
    }
}

__kernel void tfm_run_attention_grad_cells_group(__global const uchar *q, __global const uchar *k,
                                                 __global const uchar *v, __global const uchar *dy,
                                                 __global const uchar *lse, __global uchar *dq,
                                                 __global uchar *delta, __global uchar *dk,
                                                 __global uchar *dv, __global uchar *workspace,
                                                 __global const struct tfm_step *steps, uint index,
                                                 __global const int *rows, __local float *cells)
{
    __global const struct tfm_step *s = steps + index;
    const uint distances = (2 * s->span + 1) * (s->heads / s->kv_heads);
    __global float *own = (__global float *)(workspace + s->at[9]);
    struct tfm_attention_grad_group g;
    uint unit = (uint)get_group_id(0), n;

    (void)dq;
    tfm_attention_grad_start(&g, cells);
    tfm_attention_grad_operands(&g.of, q, k, v, dy, lse, own, s);
    uint cell = tfm_attention_grad_open(&g.of, unit, 1, &n, s, rows);
    while (n > 0) {
        tfm_attention_grad_cells(
            &g, cell, n, (__global const float *)(delta + s->at[6]),
            (__global float *)(dk + s->at[7]), (__global float *)(dv + s->at[8]),
            own + (ulong)get_group_id(0) * s->scratch,
            s->partial_at ? own + s->partial_at + (ulong)unit * distances : 0, s);
        unit += (uint)get_num_groups(0);
        cell = tfm_attention_grad_open(&g.of, unit, 1, &n, s, rows);
    }
}
