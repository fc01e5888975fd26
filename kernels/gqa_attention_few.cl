/* SPDX-License-Identifier: MIT
 * gqa_attention for few rows over a cache, causal: the work of persistent.cl.
 *   q [N, H, d] F32; k_cache, v_cache [slots, cells, G, d] F32 or F16, the rows' own k and v in it
 *   partial [N H][splits][d + 16] F32: sum, then most and mass of a split; y [N, H d] F32
 *
 * A unit is one row, one kv head and one split of cells_a_split cells: scores of the H/G query heads,
 * softmax over the split, weighted sum of V. A key or value is converted once for up to three heads.
 *
 *   cells    0 ...... 63 | 64 ..... 127 | 128 .. p      splits are summed by themselves and then
 *   unit         0       |      1       |    2          merged from left to right, by merge
 *
 * Work map: units, the kv heads of a split adjacent as they are in the caches, so that memory is read in
 * order; a part takes a run of them. */
#ifndef TFM_ATTENTION_SPLIT_CL
#include "gqa_attention_split.cl"
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

/* Lane i of the result is the sum of the lanes of v[i], as in tfm_sums. */
TFM_INLINE float8 tfm_sums8(const float16 *v)
{
    float16 a[4];

#pragma unroll
    for (uint i = 0; i < 4; i++)
        a[i] = (float16)(v[2 * i].even + v[2 * i].odd, v[2 * i + 1].even + v[2 * i + 1].odd);
    const float16 b = (float16)(a[0].even + a[0].odd, a[1].even + a[1].odd);
    const float16 c = (float16)(a[2].even + a[2].odd, a[3].even + a[3].odd);
    const float16 d = (float16)(b.even + b.odd, c.even + c.odd);
    return d.even + d.odd;
}

/* p [HEADS][stride] = q k scale for cells [0, n); up to the next 16 the rest is -INFINITY. */
static void tfm_few_scores(__global const float *q, __global const uchar *k, ulong at, ulong step,
                           uint n, float scale, __global float *p, uint stride)
{
    const float8 lane = (float8)(0, 1, 2, 3, 4, 5, 6, 7);

    for (uint cell = 0; cell < ((n + 15) & ~15u); cell += 8) {
        float16 sum[3][8];
#pragma unroll
        for (uint c = 0; c < TFM_FEW_HEADS; c++) {
#pragma unroll
            for (uint j = 0; j < 8; j++)
                sum[c][j] = 0.0f;
        }
#pragma unroll 1
        for (uint i = 0; i < TFM_FEW_DIM; i += 16) {
            float16 part[3];
#pragma unroll
            for (uint c = 0; c < TFM_FEW_HEADS; c++)
                part[c] = vload16(0, q + c * TFM_FEW_DIM + i);
#pragma unroll
            for (uint j = 0; j < 8; j++) {
                const float16 key =
                    tfm_load16(k, at + min(cell + j, n - 1) * step + i, TFM_FEW_CACHE);
#pragma unroll
                for (uint c = 0; c < TFM_FEW_HEADS; c++)
                    sum[c][j] = fma(part[c], key, sum[c][j]);
            }
        }
#pragma unroll
        for (uint c = 0; c < TFM_FEW_HEADS; c++) {
            const float8 score = tfm_sums8(sum[c]) * scale;
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
        const float16 weight = exp(vload16(0, p + i) - base);
        vstore16(weight, 0, p + i);
        mass += weight;
    }
    to[TFM_FEW_DIM] = now;
    to[TFM_FEW_DIM + 1] = tfm_sum16(mass);
}

/* `vectors` 16s of to [HEADS][next] from element i on = p v. */
TFM_INLINE void tfm_few_values(__global const float *p, uint stride, __global const uchar *v,
                               ulong at, ulong step, uint n, uint i, const uint vectors,
                               __global float *to, ulong next)
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
            vstore16(sum[c][b], 0, to + c * next + i + 16 * b);
    }
}

/* Cells [first, first + n) for the query heads of kv head g in `row`. */
static void tfm_few_unit(__global const float *q, __global const uchar *k, __global const uchar *v,
                         __global float *partial, __global float *p, uint row, uint slot, uint g,
                         uint split, uint n, __global const struct tfm_step *s)
{
    const uint step = s->kv_heads * TFM_FEW_DIM, stride = s->cells_a_split;
    const ulong next = (ulong)s->splits * (TFM_FEW_DIM + 16);
    const ulong at =
        ((ulong)slot * s->cells + (ulong)split * s->cells_a_split) * step + g * TFM_FEW_DIM;

    for (uint h = 0; h < TFM_FEW_SHARE; h += TFM_FEW_HEADS) {
        const ulong head = (ulong)row * s->heads + g * TFM_FEW_SHARE + h;
        __global float *to = partial + (head * s->splits + split) * (TFM_FEW_DIM + 16);
        uint i = 0;
        tfm_few_scores(q + head * TFM_FEW_DIM, k, at, step, n, s->scale, p, stride);
        for (uint c = 0; c < TFM_FEW_HEADS; c++)
            tfm_few_softmax(p + c * stride, n, to + c * next);
        for (; i + 64 <= TFM_FEW_DIM; i += 64)
            tfm_few_values(p, stride, v, at, step, n, i, 4, to, next);
        for (; i < TFM_FEW_DIM; i += 16)
            tfm_few_values(p, stride, v, at, step, n, i, 1, to, next);
    }
}

/* Reads n cells of all kv heads in order, a byte of each 64, which a processor fetches ahead; a head's own
 * reading is too scattered for that. The sum is stored so that the reading is done. */
static void tfm_few_touch(__global const uchar *cache, ulong cell, uint n, __global float *sink,
                          __global const struct tfm_step *s)
{
    const ulong bytes = (ulong)s->kv_heads * TFM_FEW_DIM * (TFM_FEW_CACHE == TFM_STEP_F16 ? 2 : 4);
    uint sum = 0;

    cache += cell * bytes;
    for (ulong i = 0; i < n * bytes; i += 64)
        sum += cache[i];
    *sink = (float)sum;
}

/* o: q, partial, k_cache, v_cache, scratch */
static void tfm_attention_few(__global uchar *const *o, __global const struct tfm_step *s,
                              __global const int *rows, uint part, uint parts)
{
    const uint n = tfm_rows(s, rows);
    __global float *p = (__global float *)o[4] + (ulong)part * s->scratch;
    ulong all = 0, unit = 0;
    uint slot = 0;

    for (uint row = 0; row < n; row++) {
        const int cell = tfm_cell_of(row, s, rows, &slot);
        all += cell < 0 ? 0 : ((uint)cell / s->cells_a_split + 1) * s->kv_heads;
    }
    const ulong from = tfm_share(all, part, parts), to = tfm_share(all, part + 1, parts);
    for (uint row = 0; row < n && unit < to; row++) {
        const int cell = tfm_cell_of(row, s, rows, &slot);
        const uint splits = cell < 0 ? 0 : (uint)cell / s->cells_a_split + 1;
        for (uint i = 0; i < splits * s->kv_heads && unit < to; i++, unit++) {
            const uint split = i / s->kv_heads, first = split * s->cells_a_split;
            const uint seen = min(s->cells_a_split, (uint)cell + 1 - first);
            if (unit < from)
                continue;
            if (unit == from || i % s->kv_heads == 0) {
                tfm_few_touch(o[2], (ulong)slot * s->cells + first, seen, p, s);
                tfm_few_touch(o[3], (ulong)slot * s->cells + first, seen, p, s);
            }
            tfm_few_unit((__global const float *)o[0], o[2], o[3], (__global float *)o[1], p, row,
                         slot, i % s->kv_heads, split, seen, s);
        }
    }
}

/* All rows into the scratch of this part. o: partial, scratch */
static void tfm_attention_few_merge(__global uchar *const *o, __global const struct tfm_step *s,
                                    __global const int *rows, uint part)
{
    const uint n = tfm_rows(s, rows), wide = TFM_FEW_DIM + 16;
    __global const float *partial = (__global const float *)o[0];
    __global float *y = (__global float *)o[1] + (ulong)part * s->scratch;
    uint slot = 0;

    for (uint row = 0; row < n; row++) {
        const int cell = tfm_cell_of(row, s, rows, &slot);
        const uint splits = cell < 0 ? 0 : (uint)cell / s->cells_a_split + 1;
        for (uint h = 0; h < s->heads; h++) {
            const ulong head = (ulong)row * s->heads + h;
            __global float *total = y + head * TFM_FEW_DIM;
            float most = -INFINITY, mass = 0.0f;
            for (uint i = 0; i < TFM_FEW_DIM; i += 16)
                vstore16((float16)(0.0f), 0, total + i);
            for (uint split = 0; split < splits; split++) {
                __global const float *from = partial + (head * s->splits + split) * wide;
                tfm_attention_merge(from[TFM_FEW_DIM], from[TFM_FEW_DIM + 1], from, &most, &mass,
                                    total, TFM_FEW_DIM);
            }
            tfm_attention_finish(total, mass, total, TFM_FEW_DIM);
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
