/* SPDX-License-Identifier: MIT
 * What both shapes of attention_grad share: the units of a run, what a query sees, and the launches around the two
 * products. attention_grad.cl has formulas, shapes and the workspace.
 *
 * The queries of a sequence and kv head are numbered row by row, its H/G heads next to one another:
 *
 *   row            0        1        2           a unit of rows: TILE of these numbers
 *   head of group  0 1 2    0 1 2    0 1 2       a unit of cells: TILE cells of the sequence and kv head
 *   number         0 1 2    3 4 5    6 7 8 */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif
#define TFM_ATTENTION_GRAD_UNITS_CL

#ifndef TFM_ATTENTION_GRAD_TILE
#define TFM_ATTENTION_GRAD_TILE \
    (TFM_GROUPED || TFM_NARROW ? 32u : 64u) /* as backends/opencl/attention_grad.c knows */
#endif

/* Operands of a launch, and the sequence and kv head of a unit. */
struct tfm_attention_grad_unit {
    __global const float *q, *k, *v, *dy, *lse;
    __global const float *bias; /* of distance 0; 0 = none */
    uint first_row, all, tiles; /* of the sequence: first row, rows, tiles of cells before it */
    uint group;                 /* the kv head */
};

static void tfm_attention_grad_operands(struct tfm_attention_grad_unit *u, __global const uchar *q,
                                        __global const uchar *k, __global const uchar *v,
                                        __global const uchar *dy, __global const uchar *lse,
                                        __global const float *workspace,
                                        __global const struct tfm_step *s)
{
    u->q = (__global const float *)(q + s->at[0]);
    u->k = (__global const float *)(k + s->at[1]);
    u->v = (__global const float *)(v + s->at[2]);
    u->dy = (__global const float *)(dy + s->at[3]);
    u->lse = (__global const float *)(lse + s->at[4]);
    u->bias = s->bias_at ? workspace + s->bias_at + (ulong)s->span * s->heads : 0;
}

/* Unit `unit` of a run: of TILE things, `share` a row, or with a share of 0 a sequence of cells. Sets sequence and kv
 * head, returns its first thing of `n`; n 0 = there are fewer units. */
static uint tfm_attention_grad_open(struct tfm_attention_grad_unit *u, uint unit, uint share,
                                    uint *n, __global const struct tfm_step *s,
                                    __global const int *rows)
{
    *n = 0;
    u->tiles = 0;
    for (uint q = 0; q < (uint)rows[TFM_ROWS_N_SEQ]; q++) {
        const uint begin = (uint)tfm_rows_start(rows)[q], all = tfm_sequence_end(rows, q) - begin;
        const uint things = all * (share ? share : 1);
        const uint size = share ? TFM_ATTENTION_GRAD_TILE : max(all, 1u);
        const uint units = (things + size - 1) / size * s->kv_heads;
        if (unit < units) {
            const uint first = unit / s->kv_heads * size;
            u->group = unit % s->kv_heads;
            u->first_row = begin;
            u->all = all;
            *n = min(things - first, size);
            return first;
        }
        unit -= units;
        u->tiles += (all + TFM_ATTENTION_GRAD_TILE - 1) / TFM_ATTENTION_GRAD_TILE;
    }
    return 0;
}

/* Row times H plus head of query number `number`. */
static ulong tfm_attention_grad_place(const struct tfm_attention_grad_unit *u, uint number,
                                      __global const struct tfm_step *s)
{
    const uint share = s->heads / s->kv_heads;
    return ((ulong)u->first_row + number / share) * s->heads + u->group * share + number % share;
}

/* Element of k and v at which a cell begins. */
static ulong tfm_attention_grad_cell(const struct tfm_attention_grad_unit *u, uint cell,
                                     __global const struct tfm_step *s)
{
    return (((ulong)u->first_row + cell) * s->kv_heads + u->group) * s->head_dim;
}

/* The cells [x, y) that row `own` of the sequence sees; both only grow from one row to the next. */
static int2 tfm_attention_grad_sight(const struct tfm_attention_grad_unit *u, int own,
                                     __global const struct tfm_step *s)
{
    const int window = (int)s->window;
    int2 sight = (int2)(0, s->bidirectional ? (int)u->all : own + 1);

    if (window > 0) {
        sight.x = own >= window ? own - window + 1 : 0;
        sight.y = window < sight.y - own ? own + window : sight.y;
    }
    return sight;
}

/* The rows [x, y) of the sequence that see any of the cells [cell, last]. */
static uint2 tfm_attention_grad_seers(const struct tfm_attention_grad_unit *u, uint cell, uint last,
                                      __global const struct tfm_step *s)
{
    const uint window = s->window;
    uint2 seers = (uint2)(s->bidirectional ? 0u : cell, u->all);

    if (window) {
        seers.x = s->bidirectional && cell >= window ? cell - window + 1 : seers.x;
        seers.y = window < seers.y - last ? last + window : seers.y;
    }
    return seers;
}

/* Bias of a head for a cell `distance` after the query. */
static float tfm_attention_grad_bias(const struct tfm_attention_grad_unit *u, int distance,
                                     uint head, __global const struct tfm_step *s)
{
    const int span = (int)s->span;
    return u->bias[(long)clamp(distance, -span, span) * (long)s->heads + head];
}

/* Lays rel_bias out by distance. Work map: the units are elements, shared out as tfm_first in common.cl shows. */
__kernel void tfm_run_attention_grad_gather(__global const uchar *rel_bias,
                                            __global const uchar *rel_bucket,
                                            __global uchar *workspace,
                                            __global const struct tfm_step *steps, uint index,
                                            __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint part = get_global_id(0), parts = get_global_size(0);
    /* without rows nobody has written it yet */
    const uint n = tfm_rows(s, rows) ? (2 * s->span + 1) * s->heads : 0;
    const uint end = (uint)tfm_end(n, part, parts);
    __global const float *from = (__global const float *)(rel_bias + s->at[0]);
    __global const int *bucket = (__global const int *)(rel_bucket + s->at[1]);
    __global float *to = (__global float *)(workspace + s->at[2]) + s->bias_at;

    for (uint i = (uint)tfm_first(n, part, parts); i < end; i += (uint)tfm_stride(parts))
        to[i] = from[(ulong)bucket[i / s->heads] * s->heads + i % s->heads];
}

/* drel_bias += for each distance of its bucket the sums of all units of its kv head, from left to right. Work map: as
 * of gather, elements of drel_bias. */
__kernel void tfm_run_attention_grad_bias(__global const uchar *rel_bucket,
                                          __global uchar *drel_bias, __global uchar *workspace,
                                          __global const struct tfm_step *steps, uint index,
                                          __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint part = get_global_id(0), parts = get_global_size(0), share = s->heads / s->kv_heads;
    const uint n = tfm_rows(s, rows) ? s->out * s->heads : 0; /* as in gather */
    const uint end = (uint)tfm_end(n, part, parts), distances = 2 * s->span + 1;
    __global const int *bucket = (__global const int *)(rel_bucket + s->at[0]);
    __global float *to = (__global float *)(drel_bias + s->at[1]);
    __global const float *from = (__global const float *)(workspace + s->at[2]) + s->partial_at;
    uint tiles = 0;

    for (uint q = 0; q < (uint)rows[TFM_ROWS_N_SEQ]; q++)
        tiles += (tfm_sequence_end(rows, q) - (uint)tfm_rows_start(rows)[q] +
                  TFM_ATTENTION_GRAD_TILE - 1) /
                 TFM_ATTENTION_GRAD_TILE;
    for (uint i = (uint)tfm_first(n, part, parts); i < end; i += (uint)tfm_stride(parts)) {
        const uint head = i % s->heads;
        float sum = 0.0f;
        for (uint at = 0; at < distances; at++) {
            for (uint t = 0; t < tiles && (uint)bucket[at] == i / s->heads; t++)
                sum += from[(((ulong)t * s->kv_heads + head / share) * distances + at) * share +
                            head % share];
        }
        to[i] += sum;
    }
}
