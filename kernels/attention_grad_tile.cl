/* SPDX-License-Identifier: MIT
 * The inner part of attention_grad: a tile of 64 queries against a tile of 64 cells; attention_grad.cl has formulas and
 * the walk over the tiles.
 *   queries, slopes [TILE][wide], turned [wide][TILE]: q scale and dy;  keys [TILE][wide];  sum [TILE][wide]: of dq
 *   weights, changes [kept][TILE]: scores, which become P, and dP, which become dS
 *
 *              64 queries: 32 in two vectors      8 x 32 sums are 16 vectors. What is multiplied with them lies in rows
 *   8 cells    [ P ][ dP ]                        as it comes: q and dy are turned once for all cells, k and v are
 *   8 cells    [   ][    ]                        read one value at a time.
 *
 * On a device without vectors a tile is 32 x 32 and 2 x 32 are summed up at a time.
 *
 * What no query of 8 times 32 sees is left out, and of the sums over cells or queries exactly what none of the 8 sees.
 * A sum runs from left to right, one fma a cell or query. */
#ifndef TFM_ATTENTION_GRAD_UNITS_CL
#include "attention_grad_units.cl"
#endif
#ifndef TFM_ATTENTION_EXP_CL
#include "attention_exp.cl"
#endif
#ifndef TFM_VECTOR_CL
#include "vector.cl"
#endif
#define TFM_ATTENTION_GRAD_TILE_CL

#define TFM_AG_BAND  (TFM_NARROW ? 2u : 8u)
#define TFM_AG_WIDTH 32u
#define TFM_AG_LOG2E 1.44269504f

/* What a part works with. */
struct tfm_attention_grad {
    struct tfm_attention_grad_unit of;
    __global float *queries, *slopes, *turned_queries, *turned_slopes, *keys, *sum;
    __global float *weights, *changes;
    __global float *bends; /* [kept][TILE]: slopes of the soft cap, if there is one */
    uint wide;             /* d in whole 32s, the rest 0 */
    uint first, n;         /* queries of the tile */
    int plain;             /* neither soft cap nor bias */
    /* of each query, those past the last see nothing; base: lse, or where it is plain what is added to powers of 2 */
    float base[TFM_ATTENTION_GRAD_TILE], delta[TFM_ATTENTION_GRAD_TILE];
    float total[TFM_ATTENTION_GRAD_TILE]; /* of P dP so far */
    int own[TFM_ATTENTION_GRAD_TILE], begin[TFM_ATTENTION_GRAD_TILE], end[TFM_ATTENTION_GRAD_TILE];
    uint head[TFM_ATTENTION_GRAD_TILE];
};

/* ---- products ---- */

/* c [last + 1][columns] = or += a [last + 1][k] times b [k][32]. turned: a lies [k][8]; adds: both constants to the
 * caller. */
TFM_INLINE void tfm_attention_grad_multiply(const int turned, const int adds,
                                            __global const float *a, ulong a_stride, uint last,
                                            __global const float *b, ulong b_stride, uint k,
                                            __global float *c, ulong c_stride, uint columns)
{
    const uint low = min(columns, 16u), high = columns - low;
    __global const float *row[TFM_AG_BAND];
    float16 sums[2 * TFM_AG_BAND];

#pragma unroll
    for (uint t = 0; t < TFM_AG_BAND; t++) {
        __global const uchar *from = (__global const uchar *)(c + min(t, last) * c_stride);
        row[t] = a + (turned ? t : min(t, last) * a_stride);
        sums[2 * t] = sums[2 * t + 1] = 0.0f;
        if (adds) {
            sums[2 * t] = tfm_loadv_n(from, 0, low, TFM_STEP_F32);
            if (high)
                sums[2 * t + 1] = tfm_loadv_n(from, 16, high, TFM_STEP_F32);
        }
    }
    for (uint i = 0; i < k; i++, b += b_stride) {
        const float16 left = vload16(0, b), right = vload16(1, b);
#pragma unroll
        for (uint t = 0; t < TFM_AG_BAND; t++) {
            const float16 v = row[t][turned ? i * a_stride : i];
            sums[2 * t] = fma(v, left, sums[2 * t]);
            sums[2 * t + 1] = fma(v, right, sums[2 * t + 1]);
        }
    }
#pragma unroll
    for (uint t = 0; t < TFM_AG_BAND; t++) {
        __global uchar *to = (__global uchar *)(c + t * c_stride);
        if (t <= last) {
            tfm_storev_n(sums[2 * t], to, 0, low, TFM_STEP_F32);
            if (high)
                tfm_storev_n(sums[2 * t + 1], to, 16, high, TFM_STEP_F32);
        }
    }
}

/* to [last + 1][TILE], the 32s that hold queries [x, y) = cells a [last + 1][d] times turned b [d][TILE]. */
static void tfm_attention_grad_score(__global const float *a, ulong stride, uint last,
                                     __global const float *b, uint d, uint2 queries,
                                     __global float *to)
{
    for (uint j = queries.x & ~31u; j < queries.y; j += TFM_AG_WIDTH)
        tfm_attention_grad_multiply(0, 0, a, stride, last, b + j, TFM_ATTENTION_GRAD_TILE, d,
                                    to + j, TFM_ATTENTION_GRAD_TILE, TFM_AG_WIDTH);
}

/* c [last + 1][d] of cells += a [last + 1][TILE] times b [TILE][wide], over queries [x, y). */
static void tfm_attention_grad_to_cells(const struct tfm_attention_grad *x, __global const float *a,
                                        uint last, __global const float *b, uint2 queries,
                                        __global float *c, __global const struct tfm_step *s)
{
    for (uint i = 0; i < s->head_dim; i += TFM_AG_WIDTH)
        tfm_attention_grad_multiply(0, 1, a + queries.x, TFM_ATTENTION_GRAD_TILE, last,
                                    b + queries.x * x->wide + i, x->wide, queries.y - queries.x,
                                    c + i, s->kv_heads * s->head_dim,
                                    min(s->head_dim - i, TFM_AG_WIDTH));
}

/* sum += changes of the tile turned times keys. at: where the changes of its first cell lie. */
static void tfm_attention_grad_to_queries(struct tfm_attention_grad *x, uint cell, uint cells,
                                          uint at)
{
    for (uint j = 0; j < x->n; j += TFM_AG_BAND) {
        const uint last = min(x->n - j, TFM_AG_BAND) - 1;
        const uint begin = max((uint)x->begin[j], cell) - cell;
        const uint end = min((uint)x->end[j + last], cell + cells);
        for (uint i = 0; i < x->wide && begin + cell < end; i += TFM_AG_WIDTH)
            tfm_attention_grad_multiply(
                1, 1, x->changes + (at + begin) * TFM_ATTENTION_GRAD_TILE + j,
                TFM_ATTENTION_GRAD_TILE, last, x->keys + begin * x->wide + i, x->wide,
                end - cell - begin, x->sum + j * x->wide + i, x->wide, TFM_AG_WIDTH);
    }
}

/* ---- probabilities and what they change ---- */

/* The queries [x, y) of the tile that see any of the cells [cell, last]; x = y = 0: none does. */
static uint2 tfm_attention_grad_onlookers(const struct tfm_attention_grad *x, uint cell, uint last,
                                          __global const struct tfm_step *s)
{
    const uint share = s->heads / s->kv_heads;
    const uint2 rows = tfm_attention_grad_seers(&x->of, cell, last, s);
    const uint begin = max(rows.x * share, x->first);
    const uint end = min(rows.y * share, x->first + x->n);

    return begin < end ? (uint2)(begin - x->first, end - x->first) : (uint2)(0, 0);
}

/* The weight of a cell and 16 queries from j on, at `place`, with a soft cap or a bias: from score to P. */
static void tfm_attention_grad_general(const struct tfm_attention_grad *x, uint cell, uint j,
                                       uint place, __global const struct tfm_step *s)
{
    float16 score = vload16(0, x->weights + place);

    if (s->softcap > 0.0f) {
        const float16 bent = tanh(score / s->softcap);
        tfm_put16(1.0f - bent * bent, 0, x->bends + place);
        score = s->softcap * bent;
    }
    if (x->of.bias) {
        float bias[16];
        for (uint i = 0; i < 16; i++)
            bias[i] = tfm_attention_grad_bias(&x->of, (int)cell - x->own[j + i], x->head[j + i], s);
        score += vload16(0, bias);
    }
    tfm_put16(tfm_attention_exp(score - vload16(0, x->base + j)), 0, x->weights + place);
}

/* weights and changes of cells [cell, cell + last], at place `at`: from scores and dP to P and dP, both 0 where a query
 * does not see; adds P dP to the totals. */
static void tfm_attention_grad_weigh(struct tfm_attention_grad *x, uint cell, uint last, uint at,
                                     uint2 queries, __global const struct tfm_step *s)
{
    const int plain = x->plain;

    for (uint j = queries.x & ~15u; j < queries.y; j += 16) {
        const int16 begin = vload16(0, x->begin + j), end = vload16(0, x->end + j);
        const float16 base = vload16(0, x->base + j);
        const int all_see =
            j + 16 <= x->n && x->begin[j + 15] <= (int)cell && x->end[j] > (int)(cell + last);
        const uint place = at * TFM_ATTENTION_GRAD_TILE + j;
        __global float *weights = x->weights + place, *changes = x->changes + place;
        float16 total = vload16(0, x->total + j);
        for (uint c = 0; c <= last && !plain; c++)
            tfm_attention_grad_general(x, cell + c, j, place + c * TFM_ATTENTION_GRAD_TILE, s);
        for (uint c = 0; c <= last; c++) {
            float16 weight = vload16(0, weights), dp = vload16(0, changes);
            if (plain)
                weight = tfm_attention_power(fma(weight, (float16)(TFM_AG_LOG2E), base));
            if (!all_see) {
                const int16 seen = ((int)(cell + c) >= begin) & ((int)(cell + c) < end);
                weight = select((float16)(0.0f), weight, seen);
                dp = select((float16)(0.0f), dp, seen);
                tfm_put16(dp, 0, changes);
            }
            total = fma(weight, dp, total);
            tfm_put16(weight, 0, weights);
            weights += TFM_ATTENTION_GRAD_TILE;
            changes += TFM_ATTENTION_GRAD_TILE;
        }
        vstore16(total, 0, x->total + j);
    }
}

/* changes of cells [cell, cell + last]: from dP to dS before the soft cap. */
static void tfm_attention_grad_change(const struct tfm_attention_grad *x, uint last, uint at,
                                      uint2 queries)
{
    for (uint j = queries.x & ~15u; j < queries.y; j += 16) {
        const float16 delta = vload16(0, x->delta + j);
        __global const float *weights = x->weights + at * TFM_ATTENTION_GRAD_TILE + j;
        __global float *changes = x->changes + at * TFM_ATTENTION_GRAD_TILE + j;
        for (uint c = 0; c <= last; c++) {
            tfm_put16(vload16(0, weights) * (vload16(0, changes) - delta), 0, changes);
            weights += TFM_ATTENTION_GRAD_TILE;
            changes += TFM_ATTENTION_GRAD_TILE;
        }
    }
}

/* Adds dS of cells [cell, cell + last] to sums [2 M + 1][H/G]. */
static void tfm_attention_grad_count(const struct tfm_attention_grad *x, uint cell, uint last,
                                     uint at, uint2 queries, __global float *sums,
                                     __global const struct tfm_step *s)
{
    const int share = (int)(s->heads / s->kv_heads), span = (int)s->span;

    for (uint c = 0; c <= last; c++) {
        for (uint j = queries.x; j < queries.y; j++)
            sums[(clamp((int)(cell + c) - x->own[j], -span, span) + span) * share +
                 (int)x->head[j] % share] += x->changes[(at + c) * TFM_ATTENTION_GRAD_TILE + j];
    }
}

/* changes of as many cells: from there to dS. */
static void tfm_attention_grad_bend(const struct tfm_attention_grad *x, uint last, uint at,
                                    uint2 queries)
{
    for (uint c = 0; c <= last; c++) {
        for (uint j = queries.x & ~15u; j < queries.y; j += 16) {
            const uint place = (at + c) * TFM_ATTENTION_GRAD_TILE + j;
            tfm_put16(vload16(0, x->changes + place) * vload16(0, x->bends + place), 0,
                      x->changes + place);
        }
    }
}

/* ---- vectors ---- */

/* to [wide] = factor times from [d], the rest 0. */
static void tfm_attention_grad_copy(__global const float *from, float factor, uint d, uint wide,
                                    __global float *to)
{
    for (uint i = 0; i < wide; i += 16) {
        float16 v = 0.0f;
        if (i < d)
            v = tfm_loadv_n((__global const uchar *)from, i, min(d - i, 16u), TFM_STEP_F32);
        tfm_put16(v * factor, 0, to + i);
    }
}

static void tfm_attention_grad_clear(__global float *to, uint n)
{
    uint i = 0;

    for (; i + 16 <= n; i += 16)
        tfm_put16((float16)(0.0f), 0, to + i);
    for (; i < n; i++)
        to[i] = 0.0f;
}

/* to [wide][TILE] = from [TILE][wide], the 32s that hold n vectors. */
static void tfm_attention_grad_turn(__global const float *from, uint n, uint wide,
                                    __global float *to)
{
    for (uint j = 0; j < (n + 31) / 32 * 32; j += 16) {
        for (uint i = 0; i < wide; i += 16) {
            float16 v[16];
#pragma unroll
            for (uint r = 0; r < 16; r++)
                v[r] = vload16(0, from + (j + r) * wide + i);
            tfm_transpose(v);
#pragma unroll
            for (uint r = 0; r < 16; r++)
                tfm_put16(v[r], 0, to + (i + r) * TFM_ATTENTION_GRAD_TILE + j);
        }
    }
}

/* Queries [first, first + n): their vectors and what they see. One that saw nothing gets vectors of 0. */
static void tfm_attention_grad_take(struct tfm_attention_grad *x, uint first, uint n,
                                    __global const struct tfm_step *s)
{
    const uint share = s->heads / s->kv_heads, d = s->head_dim;
    uint row = first / share, head = first % share;

    x->first = first;
    x->n = n;
    for (uint j = 0; j < (n + 31) / 32 * 32; j++) {
        x->base[j] = x->delta[j] = x->total[j] = 0.0f;
        x->own[j] = x->begin[j] = x->end[j] = 0;
        x->head[j] = 0;
        uint there = 0;
        ulong place = 0;
        if (j < n) {
            const int2 sight = tfm_attention_grad_sight(&x->of, (int)row, s);
            place = ((ulong)x->of.first_row + row) * s->heads + x->of.group * share + head;
            const float lse = x->of.lse[place];
            x->own[j] = (int)row;
            x->head[j] = x->of.group * share + head;
            x->begin[j] = sight.x;
            x->end[j] = sight.y;
            there = lse == -INFINITY ? 0 : d;
            if (there)
                x->base[j] = x->plain ? -lse * TFM_AG_LOG2E : lse;
            row += ++head == share;
            head = head == share ? 0 : head;
        }
        tfm_attention_grad_copy(x->of.q + place * d, s->scale, there, x->wide,
                                x->queries + j * x->wide);
        tfm_attention_grad_copy(x->of.dy + place * d, 1.0f, there, x->wide,
                                x->slopes + j * x->wide);
    }
    tfm_attention_grad_turn(x->queries, n, x->wide, x->turned_queries);
    tfm_attention_grad_turn(x->slopes, n, x->wide, x->turned_slopes);
}
