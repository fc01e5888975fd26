/* SPDX-License-Identifier: MIT
 * gqa_attention for few rows over a cache, causal: the work of persistent.cl.
 *   q [N, H, d] F32; k_cache, v_cache [slots, cells, G, d] F32 or F16, the rows' own k and v in it
 *   partial [N H][splits][d + 16] F32: sum, then most and mass of a split
 *
 * A unit is one row, one kv head and one split of cells_a_split cells: scores of the H/G query heads,
 * softmax over the split, weighted sum of V. A key or value is converted once for up to three heads.
 *
 *   cells    0 ...... 63 | 64 ..... 127 | 128 .. p      splits are summed by themselves and then
 *   unit         0       |      1       |    2          merged: gqa_attention_few_merge.cl
 *
 * Work map: units, the kv heads of a split adjacent as they are in the caches; a part takes a run of
 * them. While it computes one it fetches the cells of the split behind it, in the order of memory: what
 * limits a long context is memory, and a head's own reading is too scattered to be foreseen. */
#ifndef TFM_ATTENTION_TILE_CL
#include "gqa_attention_tile.cl"
#endif
#ifndef TFM_PROJECT_CL
#include "project.cl"
#endif
#define TFM_ATTENTION_FEW_CL

/* d, H/G and dtype id of the caches: constants of a plan. */
#ifndef TFM_FEW_DIM
#define TFM_FEW_DIM 64
#endif
#ifndef TFM_FEW_SHARE
#define TFM_FEW_SHARE 3
#endif
#ifndef TFM_FEW_CACHE
#define TFM_FEW_CACHE TFM_STEP_F16
#endif
/* Query heads at a time: their sums must fit the registers. */
#define TFM_FEW_HEADS (TFM_FEW_SHARE % 3 == 0 ? 3 : TFM_FEW_SHARE % 2 == 0 ? 2 : 1)

/* Bytes of a head of one cell. */
#define TFM_FEW_BYTES (TFM_FEW_DIM * (TFM_FEW_CACHE == TFM_STEP_F16 ? 2u : 4u))

/* Tells the processor that what lies at p is read soon. To some compilers the built-in function says
 * nothing; TFM_PAUSE: x86 assembly is taken. */
#ifdef TFM_PAUSE
#define TFM_FETCH(p) __asm__ volatile("prefetcht1 (%0)" ::"r"(p))
#else
#define TFM_FETCH(p) prefetch(p, 64)
#endif

/* What a part fetches while it computes a unit: cells [0, n) of one head, as they lie from k and v on. */
struct tfm_few_ahead {
    __global const uchar *k, *v;
    uint n;
};

TFM_INLINE void tfm_few_fetch(__global const uchar *from, uint bytes)
{
#pragma unroll 16
    for (uint i = 0; i < bytes; i += 64)
        TFM_FETCH(from + i);
}

TFM_INLINE float8 tfm_few_load8(__global const uchar *p, ulong i)
{
    return TFM_FEW_CACHE == TFM_STEP_F16 ? vload_half8(0, (__global const half *)p + i)
                                         : vload8(0, (__global const float *)p + i);
}

/* Sums of neighbours, in each half two of a and two of b. Folded twice, four vectors become one with a sum of
 * each in either half. */
TFM_INLINE float8 tfm_few_fold(float8 a, float8 b)
{
    return (float8)(a.s02, b.s02, a.s46, b.s46) + (float8)(a.s13, b.s13, a.s57, b.s57);
}

/* four[c] = q[c] . k of cells [cell, cell + 4), the sum of its halves yet to be made; past the last cell of n
 * that one again. */
TFM_INLINE void tfm_few_dots(__global const float *q, __global const uchar *k, ulong at, ulong step,
                             uint cell, uint n, float8 *four)
{
    float8 sum[3][4];
    ulong from[4];

#pragma unroll
    for (uint j = 0; j < 4; j++)
        from[j] = at + min(cell + j, n - 1) * step;
#pragma unroll
    for (uint c = 0; c < TFM_FEW_HEADS; c++) {
#pragma unroll
        for (uint j = 0; j < 4; j++)
            sum[c][j] = 0.0f;
    }
#pragma unroll 8
    for (uint i = 0; i < TFM_FEW_DIM; i += 8) {
        float8 part[3];
#pragma unroll
        for (uint c = 0; c < TFM_FEW_HEADS; c++)
            part[c] = vload8(0, q + c * TFM_FEW_DIM + i);
#pragma unroll
        for (uint j = 0; j < 4; j++) {
            const float8 key = tfm_few_load8(k, from[j] + i);
#pragma unroll
            for (uint c = 0; c < TFM_FEW_HEADS; c++)
                sum[c][j] = fma(part[c], key, sum[c][j]);
        }
    }
#pragma unroll
    for (uint c = 0; c < TFM_FEW_HEADS; c++)
        four[c] =
            tfm_few_fold(tfm_few_fold(sum[c][0], sum[c][1]), tfm_few_fold(sum[c][2], sum[c][3]));
}

/* p [HEADS][stride] = q k scale for cells [0, n); up to the next 16 the rest is -INFINITY. */
static void tfm_few_scores(__global const float *q, __global const uchar *k, ulong at, ulong step,
                           uint n, float scale, __global float *p, uint stride,
                           const struct tfm_few_ahead *ahead)
{
    const float8 lane = (float8)(0, 1, 2, 3, 4, 5, 6, 7);

    for (uint cell = 0; cell < ((n + 15) & ~15u); cell += 8) {
        float8 low[3], high[3];
        if (cell < ahead->n)
            tfm_few_fetch(ahead->k + cell * TFM_FEW_BYTES, 8 * TFM_FEW_BYTES);
        tfm_few_dots(q, k, at, step, cell, n, low);
        tfm_few_dots(q, k, at, step, cell + 4, n, high);
#pragma unroll
        for (uint c = 0; c < TFM_FEW_HEADS; c++) {
            const float8 score =
                ((float8)(low[c].lo, high[c].lo) + (float8)(low[c].hi, high[c].hi)) * scale;
            vstore8(select(score, (float8)(-INFINITY), lane >= (float8)((float)n - (float)cell)), 0,
                    p + c * stride + cell);
        }
    }
}

/* p = exp(p - its maximum) over n cells, which is stored in to[d], the sum of p in to[d + 1]. */
static void tfm_few_softmax(__global float *p, uint n, __global float *to)
{
    float16 most = -INFINITY, mass = 0.0f;

    for (uint i = 0; i < n; i += 16)
        most = fmax(most, vload16(0, p + i));
    const float now = tfm_max16(most), base = now == -INFINITY ? 0.0f : now;
    for (uint i = 0; i < n; i += 16) {
        const float16 weight = tfm_attention_exp(vload16(0, p + i) - base);
        tfm_put16(weight, 0, p + i);
        mass += weight;
    }
    to[TFM_FEW_DIM] = now;
    to[TFM_FEW_DIM + 1] = tfm_sum16(mass);
}

/* `vectors` 16s of to [HEADS][next] from element i on = p v; `fetch` cells of `ahead` on the way. */
TFM_INLINE void tfm_few_values(__global const float *p, uint stride, __global const uchar *v,
                               ulong at, ulong step, uint n, uint i, const uint vectors,
                               __global float *to, ulong next, __global const uchar *ahead,
                               uint fetch)
{
    float16 sum[3][4];

#pragma unroll
    for (uint c = 0; c < TFM_FEW_HEADS; c++) {
#pragma unroll
        for (uint b = 0; b < vectors; b++)
            sum[c][b] = 0.0f;
    }
    at += i;
#pragma unroll 1
    for (uint cell = 0; cell < n; cell++, at += step) {
        float16 value[4];
        if (cell < fetch)
            tfm_few_fetch(ahead + cell * TFM_FEW_BYTES, TFM_FEW_BYTES);
#pragma unroll
        for (uint b = 0; b < vectors; b++)
            value[b] = tfm_load16(v, at + 16 * b, TFM_FEW_CACHE);
#pragma unroll
        for (uint c = 0; c < TFM_FEW_HEADS; c++) {
            const float16 weight = p[c * stride + cell];
#pragma unroll
            for (uint b = 0; b < vectors; b++)
                sum[c][b] = fma(weight, value[b], sum[c][b]);
        }
    }
#pragma unroll
    for (uint c = 0; c < TFM_FEW_HEADS; c++) {
#pragma unroll
        for (uint b = 0; b < vectors; b++)
            tfm_put16(sum[c][b], 0, to + c * next + i + 16 * b);
    }
}

/* Cells [first, first + n) for the query heads of kv head g in `row`. */
static void tfm_few_unit(__global const float *q, __global const uchar *k, __global const uchar *v,
                         __global float *partial, __global float *p, uint row, uint slot, uint g,
                         uint split, uint n, __global const struct tfm_step *s,
                         struct tfm_few_ahead *ahead)
{
    const uint step = s->kv_heads * TFM_FEW_DIM, stride = s->cells_a_split;
    const ulong next = (ulong)s->splits * (TFM_FEW_DIM + 16);
    const ulong at =
        ((ulong)slot * s->cells + (ulong)split * s->cells_a_split) * step + g * TFM_FEW_DIM;

    for (uint h = 0; h < TFM_FEW_SHARE; h += TFM_FEW_HEADS, ahead->n = 0) {
        const ulong head = (ulong)row * s->heads + g * TFM_FEW_SHARE + h;
        __global float *to = partial + (head * s->splits + split) * (TFM_FEW_DIM + 16);
        uint i = 0;
        tfm_few_scores(q + head * TFM_FEW_DIM, k, at, step, n, s->scale, p, stride, ahead);
        for (uint c = 0; c < TFM_FEW_HEADS; c++)
            tfm_few_softmax(p + c * stride, n, to + c * next);
        for (; i + 64 <= TFM_FEW_DIM; i += 64)
            tfm_few_values(p, stride, v, at, step, n, i, 4, to, next, ahead->v,
                           i == 0 ? ahead->n : 0);
        for (; i < TFM_FEW_DIM; i += 16)
            tfm_few_values(p, stride, v, at, step, n, i, 1, to, next, ahead->v,
                           i == 0 ? ahead->n : 0);
    }
}

/* o: q, partial, k_cache, v_cache, scratch */
static void tfm_attention_few(__global uchar *const *o, __global const struct tfm_step *s,
                              __global const int *rows, uint part, uint parts)
{
    const uint n = tfm_rows(s, rows), all_g = s->kv_heads;
    const ulong bytes = (ulong)all_g * TFM_FEW_BYTES; /* of a cell */
    __global float *p = (__global float *)o[4] + (ulong)part * s->scratch;
    ulong all = 0, unit = 0;
    uint slot = 0;

    for (uint row = 0; row < n; row++) {
        const int cell = tfm_cell_of(row, s, rows, &slot);
        all += cell < 0 ? 0 : ((uint)cell / s->cells_a_split + 1) * all_g;
    }
    const ulong from = tfm_share(all, part, parts), to = tfm_share(all, part + 1, parts);
    for (uint row = 0; row < n && unit < to; row++) {
        const int cell = tfm_cell_of(row, s, rows, &slot);
        const uint cells = (uint)(cell + 1);
        const uint units = (cells + s->cells_a_split - 1) / s->cells_a_split * all_g;
        for (uint i = 0; i < units && unit < to; i++, unit++) {
            const uint g = i % all_g, first = i / all_g * s->cells_a_split;
            const uint seen = min(s->cells_a_split, cells - first);
            const ulong here = ((ulong)slot * s->cells + first) * bytes, next = here + seen * bytes;
            if (unit < from)
                continue;
            if (unit == from || i == 0) {
                for (ulong b = 0; b < seen * bytes; b += 64) {
                    TFM_FETCH(o[2] + here + b);
                    TFM_FETCH(o[3] + here + b);
                }
            }
            struct tfm_few_ahead ahead = {o[2] + next, o[3] + next, 0};
            if (unit - g + all_g < to) /* its share of the next split, if that begins here */
                ahead.n = min(s->cells_a_split, cells - first - seen);
            ahead.k += (ulong)g * ahead.n * TFM_FEW_BYTES;
            ahead.v += (ulong)g * ahead.n * TFM_FEW_BYTES;
            tfm_few_unit((__global const float *)o[0], o[2], o[3], (__global float *)o[1], p, row,
                         slot, g, i / all_g, seen, s, &ahead);
        }
    }
}

/* k and v to their cells, where no step has done it at once. o: k, v, k_cache, v_cache */
static void tfm_attention_few_append(__global uchar *const *o, __global const struct tfm_step *s,
                                     __global const int *rows, uint part, uint parts)
{
    const uint n = tfm_rows(s, rows), width = s->kv_heads * TFM_FEW_DIM;
    const uint end = (uint)tfm_share(n, part + 1, parts);

    for (uint row = (uint)tfm_share(n, part, parts); row < end; row++) {
        tfm_append((__global const float *)o[0], o[2], TFM_FEW_CACHE, row, 0, width, width, s,
                   rows);
        tfm_append((__global const float *)o[1], o[3], TFM_FEW_CACHE, row, 0, width, width, s,
                   rows);
    }
}
