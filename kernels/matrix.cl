/* SPDX-License-Identifier: MIT
 * Matrix products over operands that lie row-major, as trainable weights, activations and gradients do:
 *   linear         y [n, out]   = x [n, in] W^T (+ bias)      weight [out, in] F32, F16 or BF16
 *   linear_grad_x  dx [n, in]   = dy [n, out] W
 *   linear_grad_w  dW [out, in] += dy^T x,  db [out] += sum of dy over n
 * n = vectors of this run; everything but the weight is F32. All three are
 *   c (m, j) (+)= sum over k of a (m, k) b (k, j)
 *
 *             columns j, 32 at a time: 0 ... 15 | 16 ... 31
 *   m         +-------------------------------------------+
 *   8 of a    | 8 x 32 sums in 16 vectors: for each k two |    b is packed once into `tile` [depth][32] in
 *   band      | vectors of b and 8 values of a            |    the order in which it is read; all bands of
 *             +-------------------------------------------+    a part sweep over it
 *
 * Work map: the units are 32 columns times bands of 8 m, columns outside; a part takes a run of them. k is
 * taken in pieces of TFM_MATRIX_DEPTH, between which the sums wait in c. A c is summed over k from left to
 * right, one fma a k, from 0 or from what is there.
 *
 * With TFM_BF16_WAY (bf16.cl) both factors are bf16, and a cell holds two values of k that follow one another; what
 * lies past the last is 0. Weights have that type, everything else is rounded: b while it is packed, a by
 * kernels at the end of this file, before the product:
 *   a (m, k)    [m][TFM_BF16_STRIDE cells of k]     a, turned    [m / 8][TFM_BF16_STRIDE_TURNED cells of k][8 of m] */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif
#ifndef TFM_BF16_CL
#include "bf16.cl"
#endif
#define TFM_MATRIX_CL

#ifndef TFM_MATRIX_DEPTH
#define TFM_MATRIX_DEPTH 2048
#endif
#define TFM_MATRIX_BAND  8u /* m of a band: as many sums as 32 vector registers hold */
#define TFM_MATRIX_WIDTH 32u

/* Values of k in a cell of a and of a tile; strides of a as below; cells from one of k to the next where a lies
 * turned. */
#ifdef TFM_BF16_WAY
#define TFM_MATRIX_CELL                2u
#define TFM_MATRIX_TURNED(x)           TFM_MATRIX_BAND
#define TFM_MATRIX_STRIDE(k)           TFM_BF16_STRIDE(k)
#define TFM_MATRIX_STRIDE_TURNED(m, k) TFM_BF16_STRIDE_TURNED(k)
typedef uint tfm_cell;
typedef uint16 tfm_cell16;
typedef float16 tfm_cells_any __attribute__((aligned(2)));
#else
#define TFM_MATRIX_CELL                1u
#define TFM_MATRIX_TURNED(x)           (x)
#define TFM_MATRIX_STRIDE(k)           (k)
#define TFM_MATRIX_STRIDE_TURNED(m, k) (m)
typedef float tfm_cell;
typedef float16 tfm_cell16;
#endif

/* One product. a (m, k) is a[m stride + k], or a[k stride + m] when it lies turned; bf16 as above, with strides
 * in cells. */
struct tfm_matrix {
    __global const tfm_cell *a;
    __global const uchar
        *b; /* (k, j) is element k b_stride + j of b_type, or j b_stride + k turned */
    __global const uchar *bias;
    __global float *c;
    __global tfm_cell *tile;
    ulong a_stride, b_stride;
    uint b_type, bias_type;
    uint m, k, j; /* extents */
};

static float16 tfm_matrix_take(__global const uchar *from, ulong at, uint lanes, uint type)
{
    if (lanes >= 16)
        return tfm_load16(from, at, type);
    return lanes ? tfm_load_tail(from, at, lanes, type) : (float16)(0.0f);
}

static void tfm_matrix_put(float16 v, __global float *to, uint lanes)
{
    if (lanes >= 16)
        tfm_put16(v, 0, to);
    else if (lanes)
        tfm_store_tail(v, (__global uchar *)to, 0, lanes, TFM_STEP_F32);
}

/* 16 or fewer columns of the cell that begins with element `at` of b, whose k is `left` from the last. */
static tfm_cell16 tfm_matrix_cell(const struct tfm_matrix *x, ulong at, uint lanes, uint left)
{
#ifdef TFM_BF16_WAY
    const uint16 first = tfm_bf16_round(tfm_matrix_take(x->b, at, lanes, x->b_type));
    const uint16 second =
        tfm_bf16_round(tfm_matrix_take(x->b, at + x->b_stride, left > 1 ? lanes : 0u, x->b_type));
    return first | second << 16;
#else
    (void)left;
    return tfm_matrix_take(x->b, at, lanes, x->b_type);
#endif
}

/* `length` values of k of one row of b that lies turned, in 16 cells. */
static float16 tfm_matrix_cells(const struct tfm_matrix *x, ulong at, uint length)
{
#ifdef TFM_BF16_WAY
    __global const ushort *from = (__global const ushort *)x->b + at;
    ushort lanes[32];
    for (uint i = 0; i < 32; i++)
        lanes[i] = i < length ? from[i] : (ushort)0;
    return tfm_join(as_float8(vload16(0, lanes)), as_float8(vload16(1, lanes)));
#else
    return tfm_matrix_take(x->b, at, length, x->b_type);
#endif
}

static void tfm_matrix_put_cells(tfm_cell16 v, ulong i, __global tfm_cell *tile)
{
#ifdef TFM_BF16_WAY
    tfm_put16_uint(v, i, tile);
#else
    tfm_put16(v, i, tile);
#endif
}

#ifdef TFM_BF16_WAY
/* 16 columns of one k that are all there. */
TFM_INLINE uint16 tfm_matrix_bits(const uint type, __global const uchar *b, ulong at)
{
    return type == TFM_STEP_BF16 ? convert_uint16(vload16(0, (__global const ushort *)b + at))
                                 : tfm_bf16_round(tfm_load16(b, at, type));
}

/* Cells of which nothing lies past the last column or k. type: a constant to the caller. */
TFM_INLINE void tfm_matrix_pack_whole(const uint type, const struct tfm_matrix *x, uint j, uint k,
                                      uint cells)
{
    ulong at = k * x->b_stride + j;

    for (uint i = 0; i < cells; i++, at += 2 * x->b_stride) {
        const ulong next = at + x->b_stride;
        tfm_put16_uint(tfm_matrix_bits(type, x->b, at) | tfm_matrix_bits(type, x->b, next) << 16,
                       2 * i, x->tile);
        tfm_put16_uint(tfm_matrix_bits(type, x->b, at + 16) | tfm_matrix_bits(type, x->b, next + 16)
                                                                  << 16,
                       2 * i + 1, x->tile);
    }
}
#endif

/* Columns [j, j + columns) of k [k, k + depth) to tile [cells][32]; what lies past them is 0. */
static void tfm_matrix_pack(const struct tfm_matrix *x, uint j, uint columns, uint k, uint depth)
{
    const uint low = min(columns, 16u), high = columns - low;
    uint i = 0;

#ifdef TFM_BF16_WAY
    if (columns == TFM_MATRIX_WIDTH) {
        i = depth / 2 * 2;
        if (x->b_type == TFM_STEP_BF16)
            tfm_matrix_pack_whole(TFM_STEP_BF16, x, j, k, depth / 2);
        else
            tfm_matrix_pack_whole(TFM_STEP_F32, x, j, k, depth / 2);
    }
#endif
    for (; i < depth; i += TFM_MATRIX_CELL) {
        const ulong at = (k + i) * x->b_stride + j, to = 2 * (i / TFM_MATRIX_CELL);
        tfm_matrix_put_cells(tfm_matrix_cell(x, at, low, depth - i), to, x->tile);
        tfm_matrix_put_cells(tfm_matrix_cell(x, at + 16, high, depth - i), to + 1, x->tile);
    }
}

/* The same where b lies turned: 16 x 16 cells at a time. bf16: b is. */
static void tfm_matrix_pack_turned(const struct tfm_matrix *x, uint j, uint columns, uint k,
                                   uint depth)
{
    const uint cells = (depth + TFM_MATRIX_CELL - 1) / TFM_MATRIX_CELL;

    for (uint side = 0; side < 2; side++) {
        const uint lanes = columns > 16 * side ? min(columns - 16 * side, 16u) : 0u;
        for (uint i = 0; i < cells; i += 16) {
            const uint length = min(depth - i * TFM_MATRIX_CELL, 16u * TFM_MATRIX_CELL);
            const ulong at = (j + 16 * side) * x->b_stride + k + i * TFM_MATRIX_CELL;
            float16 v[16];
#ifdef TFM_BF16_WAY
            if (lanes == 16 && length == 32) {
#pragma unroll
                for (uint r = 0; r < 16; r++)
                    v[r] = *(__global const tfm_cells_any *)((__global const ushort *)x->b + at +
                                                             r * x->b_stride);
            } else
#endif
            {
#pragma unroll
                for (uint r = 0; r < 16; r++)
                    v[r] = tfm_matrix_cells(x, at + r * x->b_stride, r < lanes ? length : 0u);
            }
            tfm_transpose(v);
#pragma unroll
            for (uint r = 0; r < 16; r++) {
                if (i + r < cells)
                    tfm_put16(v[r], 2 * (i + r) + side, (__global float *)x->tile);
            }
        }
    }
}

/* sums [2 * 8] += a (0..7, 0..cells) times tile [cells][32]; m past `last` repeat it. */
TFM_INLINE void tfm_matrix_multiply(const int turned, __global const tfm_cell *a, ulong stride,
                                    uint last, __global const tfm_cell *tile, uint cells,
                                    float16 *sums)
{
    __global const tfm_cell *row[TFM_MATRIX_BAND];

#pragma unroll
    for (uint t = 0; t < TFM_MATRIX_BAND; t++)
        row[t] = a + min(t, last) * (turned ? 1 : stride);
    for (uint k = 0; k < cells; k++) {
        const tfm_cell16 low = vload16(2 * k, tile), high = vload16(2 * k + 1, tile);
#pragma unroll
        for (uint t = 0; t < TFM_MATRIX_BAND; t++) {
            const tfm_cell v = row[t][turned ? k * TFM_MATRIX_TURNED(stride) : k];
#ifdef TFM_BF16_WAY
            sums[2 * t] = tfm_bf16_dot(sums[2 * t], low, v);
            sums[2 * t + 1] = tfm_bf16_dot(sums[2 * t + 1], high, v);
#else
            sums[2 * t] = fma((float16)v, low, sums[2 * t]);
            sums[2 * t + 1] = fma((float16)v, high, sums[2 * t + 1]);
#endif
        }
    }
}

/* Where a (m, k) lies, m the first of a band and k of a cell. */
TFM_INLINE __global const tfm_cell *tfm_matrix_a(const int turned, const struct tfm_matrix *x,
                                                 uint m, uint k)
{
    const ulong cell = k / TFM_MATRIX_CELL;

#ifdef TFM_BF16_WAY
    return x->a + m * x->a_stride + (turned ? cell * TFM_MATRIX_BAND : cell);
#else
    return x->a + (turned ? cell * x->a_stride + m : m * x->a_stride + cell);
#endif
}

/* One band: m [m, m + last], `columns` columns from j on, k [k, k + depth). begun: c holds the sums of smaller
 * k, or what is added to. */
TFM_INLINE void tfm_matrix_band(const int turned, const struct tfm_matrix *x, uint m, uint last,
                                uint j, uint columns, uint k, uint depth, int begun,
                                const float16 *bias)
{
    const uint low = min(columns, 16u), high = columns - low;
    __global float *c = x->c + (ulong)m * x->j + j;
    float16 sums[2 * TFM_MATRIX_BAND];

#pragma unroll
    for (uint t = 0; t < 2 * TFM_MATRIX_BAND; t++)
        sums[t] = 0.0f;
    if (begun) {
#ifdef TFM_BF16_WAY
        /* the sums of the next band, which it begins with */
        if (m + 2 * TFM_MATRIX_BAND <= x->m && columns == TFM_MATRIX_WIDTH) {
#pragma unroll
            for (uint t = 0; t < TFM_MATRIX_BAND; t++) {
                tfm_bf16_fetch(c + (TFM_MATRIX_BAND + t) * (ulong)x->j);
                tfm_bf16_fetch(c + (TFM_MATRIX_BAND + t) * (ulong)x->j + 16);
            }
        }
#endif
#pragma unroll
        for (uint t = 0; t < TFM_MATRIX_BAND; t++) {
            __global const uchar *from = (__global const uchar *)(c + (ulong)min(t, last) * x->j);
            sums[2 * t] = tfm_matrix_take(from, 0, low, TFM_STEP_F32);
            sums[2 * t + 1] = tfm_matrix_take(from, 16, high, TFM_STEP_F32);
        }
    }
    tfm_matrix_multiply(turned, tfm_matrix_a(turned, x, m, k), x->a_stride, last, x->tile,
                        (depth + TFM_MATRIX_CELL - 1) / TFM_MATRIX_CELL, sums);
#pragma unroll
    for (uint t = 0; t < TFM_MATRIX_BAND; t++) {
        if (t <= last) {
            tfm_matrix_put(sums[2 * t] + bias[0], c + (ulong)t * x->j, low);
            tfm_matrix_put(sums[2 * t + 1] + bias[1], c + (ulong)t * x->j + 16, high);
        }
    }
}

/* The units of one part. a_turned, b_turned: constants to the caller. adds: c is added to. */
TFM_INLINE void tfm_matrix(const int a_turned, const int b_turned, const int adds,
                           const struct tfm_matrix *x, uint part, uint parts)
{
    const uint bands = (x->m + TFM_MATRIX_BAND - 1) / TFM_MATRIX_BAND;
    const uint strips = (x->j + TFM_MATRIX_WIDTH - 1) / TFM_MATRIX_WIDTH;
    const ulong units = (ulong)strips * bands, end = tfm_share(units, part + 1, parts);

    for (ulong unit = tfm_share(units, part, parts); unit < end;) {
        const uint strip = (uint)(unit / bands), first = (uint)(unit % bands);
        const uint stop = (uint)min((ulong)bands, first + (end - unit));
        const uint j = strip * TFM_MATRIX_WIDTH, columns = min(x->j - j, TFM_MATRIX_WIDTH);
        for (uint k = 0; k < x->k; k += TFM_MATRIX_DEPTH) {
            const uint depth = min(x->k - k, (uint)TFM_MATRIX_DEPTH);
            float16 bias[2] = {0.0f, 0.0f};
            if (b_turned)
                tfm_matrix_pack_turned(x, j, columns, k, depth);
            else
                tfm_matrix_pack(x, j, columns, k, depth);
            if (x->bias_type != TFM_STEP_NONE && k + depth == x->k) {
                bias[0] = tfm_matrix_take(x->bias, j, min(columns, 16u), x->bias_type);
                if (columns > 16)
                    bias[1] = tfm_matrix_take(x->bias, j + 16, columns - 16, x->bias_type);
            }
            for (uint t = first; t < stop; t++)
                tfm_matrix_band(a_turned, x, t * TFM_MATRIX_BAND,
                                min(x->m - t * TFM_MATRIX_BAND, TFM_MATRIX_BAND) - 1, j, columns, k,
                                depth, adds || k > 0, bias);
        }
        unit += stop - first;
    }
}

__kernel void tfm_run_linear_rows(__global const uchar *x, __global const uchar *weight,
                                  __global const uchar *bias, __global uchar *y,
                                  __global uchar *tile, __global const struct tfm_step *steps,
                                  uint index, __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint part = get_group_id(0), parts = get_num_groups(0);
    const struct tfm_matrix product = {
        (__global const tfm_cell *)(x + s->at[0]),
        weight + s->at[1],
        bias + s->at[2],
        (__global float *)(y + s->at[3]),
        (__global tfm_cell *)(tile + s->at[4]) + (ulong)part * s->scratch,
        TFM_MATRIX_STRIDE(s->width),
        s->width,
        s->type[1],
        s->type[2],
        tfm_vectors(s, rows),
        s->width,
        s->out,
    };

    tfm_matrix(0, 1, 0, &product, part, parts);
}

__kernel void tfm_run_linear_grad_x(__global const uchar *weight, __global const uchar *dy,
                                    __global uchar *dx, __global uchar *tile,
                                    __global const struct tfm_step *steps, uint index,
                                    __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint part = get_group_id(0), parts = get_num_groups(0);
    const struct tfm_matrix product = {
        (__global const tfm_cell *)(dy + s->at[1]),
        weight + s->at[0],
        weight,
        (__global float *)(dx + s->at[2]),
        (__global tfm_cell *)(tile + s->at[3]) + (ulong)part * s->scratch,
        TFM_MATRIX_STRIDE(s->out),
        s->width,
        s->type[0],
        TFM_STEP_NONE,
        tfm_vectors(s, rows),
        s->out,
        s->width,
    };

    tfm_matrix(0, 0, 0, &product, part, parts);
}

/* db of 16 features at a time. */
static void tfm_linear_grad_b(__global const float *dy, __global float *db, uint n, uint out,
                              uint part, uint parts)
{
    const uint vectors = (out + 15) / 16, end = (uint)tfm_share(vectors, part + 1, parts);

    for (uint v = (uint)tfm_share(vectors, part, parts); v < end && n > 0; v++) {
        const uint lanes = min(out - 16 * v, 16u);
        float16 sum = tfm_matrix_take((__global const uchar *)db, 16 * v, lanes, TFM_STEP_F32);
        for (uint i = 0; i < n; i++)
            sum += tfm_matrix_take((__global const uchar *)dy, (ulong)i * out + 16 * v, lanes,
                                   TFM_STEP_F32);
        tfm_matrix_put(sum, db + 16 * v, lanes);
    }
}

__kernel void tfm_run_linear_grad_w(__global const uchar *x, __global const uchar *dy,
                                    __global uchar *dw, __global uchar *db, __global uchar *tile,
                                    __global const struct tfm_step *steps, uint index,
                                    __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint part = get_group_id(0), parts = get_num_groups(0);
    const struct tfm_matrix product = {
        (__global const tfm_cell *)(dy + s->at[1]),
        x + s->at[0],
        x,
        (__global float *)(dw + s->at[2]),
        (__global tfm_cell *)(tile + s->at[4]) + (ulong)part * s->scratch,
        TFM_MATRIX_STRIDE_TURNED(s->out, tfm_vectors(s, rows)),
        s->width,
        TFM_STEP_F32,
        TFM_STEP_NONE,
        s->out,
        tfm_vectors(s, rows),
        s->width,
    };

    if (s->type[2] != TFM_STEP_NONE)
        tfm_matrix(1, 0, 1, &product, part, parts);
    if (s->type[3] != TFM_STEP_NONE)
        tfm_linear_grad_b((__global const float *)(dy + s->at[1]),
                          (__global float *)(db + s->at[3]), product.k, s->out, part, parts);
}

#ifdef TFM_BF16_WAY
/* 32 values of x from element `at` on, 0 behind the first `lanes`. */
TFM_INLINE uint16 tfm_bf16_values(__global const uchar *x, ulong at, uint lanes)
{
    if (lanes >= 32)
        return tfm_bf16_join(vload16(0, (__global const float *)x + at),
                             vload16(1, (__global const float *)x + at));
    return tfm_bf16_join(tfm_matrix_take(x, at, min(lanes, 16u), TFM_STEP_F32),
                         tfm_matrix_take(x, at + 16, lanes > 16 ? lanes - 16 : 0u, TFM_STEP_F32));
}

/* x [n, width] F32 -> [n][TFM_BF16_STRIDE] cells. Work map: 32 values are a unit. */
__kernel void tfm_run_bf16_rows(__global const uchar *x, __global uchar *to,
                                __global const struct tfm_step *steps, uint index,
                                __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    __global const uchar *from = x + s->at[0];
    __global uint *cells = (__global uint *)(to + s->at[1]);
    const uint part = get_group_id(0), parts = get_num_groups(0), groups = (s->width + 31) / 32;
    const ulong units = (ulong)tfm_vectors(s, rows) * groups;
    const ulong begin = tfm_share(units, part, parts);
    ulong left = tfm_share(units, part + 1, parts) - begin, row = begin / groups;

    for (uint first = (uint)(begin % groups); left > 0; row++, first = 0) {
        const uint end = (uint)min((ulong)groups, first + left);
        left -= end - first;
        for (; first < end; first++)
            tfm_put16_uint(
                tfm_bf16_values(from, row * s->width + 32 * first, s->width - 32 * first), first,
                cells + row * TFM_BF16_STRIDE(s->width));
    }
}

/* 32 of m, two of k above each other, turned: a cell of 4 bands in two vectors. */
TFM_INLINE void tfm_bf16_turn(uint16 above, uint16 below, uint16 *low, uint16 *high)
{
    const uint16 even = (above & 0xffffu) | below << 16, odd = above >> 16 | (below & 0xffff0000u);

    *low = as_uint16(tfm_zip(as_float8(even.lo), as_float8(odd.lo)));
    *high = as_uint16(tfm_zip(tfm_high(as_float16(even)), tfm_high(as_float16(odd))));
}

/* Two cells of a band, a whole line of the cache. */
TFM_INLINE void tfm_bf16_put_cells(float8 first, float8 second, __global uint *band)
{
    tfm_put16(tfm_join(first, second), 0, (__global float *)band);
}

/* Both forms of x at once, which is read once: `to` as tfm_run_bf16_rows makes it, `turned` as
 * tfm_run_bf16_turned does. Work map: 4 rows are a unit: a processor reads them as they lie. */
__kernel void tfm_run_bf16_both(__global const uchar *x, __global uchar *to, __global uchar *turned,
                                __global const struct tfm_step *steps, uint index,
                                __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint width = s->width, n = tfm_vectors(s, rows), units = (n + 3) / 4;
    const uint stride = TFM_BF16_STRIDE(width), next = TFM_BF16_STRIDE_TURNED(n) * 8;
    const uint part = get_group_id(0), parts = get_num_groups(0);
    const uint end = (uint)tfm_share(units, part + 1, parts);
    __global uint *bands = (__global uint *)(turned + s->at[2]);

    for (uint unit = (uint)tfm_share(units, part, parts); unit < end; unit++) {
        const uint left = n - 4 * unit;
        __global const uchar *from = x + s->at[0] + 16ul * unit * width;
        __global uint *place = (__global uint *)(to + s->at[1]) + 4ul * unit * stride;
        for (uint m = 0; m < width; m += 32) {
            const uint lanes = min(width - m, 32u), group = m / 32;
            __global uint *band = bands + (ulong)(m / 8) * next + 16ul * unit;
            uint16 v[4] = {0u, 0u, 0u, 0u}, low[2], high[2];
#pragma unroll
            for (uint i = 0; i < 4; i++) {
                if (i < left) {
                    v[i] = tfm_bf16_values(from, (ulong)i * width + m, lanes);
                    tfm_put16_uint(v[i], group, place + i * stride);
                }
            }
            tfm_bf16_turn(v[0], v[1], &low[0], &high[0]);
            tfm_bf16_turn(v[2], v[3], &low[1], &high[1]);
            tfm_bf16_put_cells(as_float8(low[0].lo), as_float8(low[1].lo), band);
            if (lanes > 8)
                tfm_bf16_put_cells(tfm_high(as_float16(low[0])), tfm_high(as_float16(low[1])),
                                   band + next);
            if (lanes > 16)
                tfm_bf16_put_cells(as_float8(high[0].lo), as_float8(high[1].lo), band + 2ul * next);
            if (lanes > 24)
                tfm_bf16_put_cells(tfm_high(as_float16(high[0])), tfm_high(as_float16(high[1])),
                                   band + 3ul * next);
        }
    }
}

/* x [n, width] F32 -> turned [width / 8][TFM_BF16_STRIDE_TURNED cells of n][8]; m past the last of a band are 0. Work
 * map: 16 of m times 16 cells are a unit. */
__kernel void tfm_run_bf16_turned(__global const uchar *x, __global uchar *to,
                                  __global const struct tfm_step *steps, uint index,
                                  __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    __global const uchar *from = x + s->at[0];
    __global uint *turned = (__global uint *)(to + s->at[1]);
    const uint part = get_group_id(0), parts = get_num_groups(0), n = tfm_vectors(s, rows);
    const uint cells = (n + 1) / 2, blocks = (cells + 15) / 16, groups = (s->width + 15) / 16;
    const ulong units = (ulong)groups * blocks, end = tfm_share(units, part + 1, parts);
    const ulong stride = TFM_BF16_STRIDE_TURNED(n);

    for (ulong unit = tfm_share(units, part, parts); unit < end; unit++) {
        const uint m = (uint)(unit / blocks) * 16, first = (uint)(unit % blocks) * 16;
        const uint lanes = min(s->width - m, 16u);
        for (uint k = first; k < min(first + 16, cells); k++) {
            const ulong at = 2ul * k * s->width + m;
            uint16 pairs;
            if (lanes == 16 && 2 * k + 1 < n)
                pairs = tfm_bf16_round(tfm_load16(from, at, TFM_STEP_F32)) |
                        tfm_bf16_round(tfm_load16(from, at + s->width, TFM_STEP_F32)) << 16;
            else
                pairs = tfm_bf16_round(tfm_matrix_take(from, at, lanes, TFM_STEP_F32)) |
                        tfm_bf16_round(tfm_matrix_take(from, at + s->width,
                                                       2 * k + 1 < n ? lanes : 0u, TFM_STEP_F32))
                            << 16;
            vstore8(pairs.lo, m / 8 * stride + k, turned);
            if (lanes > 8)
                vstore8(as_uint8(tfm_high(as_float16(pairs))), (m / 8 + 1) * stride + k, turned);
        }
    }
}
#endif
