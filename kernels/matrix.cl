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
 * right, one fma a k, from 0 or from what is there. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif
#define TFM_MATRIX_CL

#ifndef TFM_MATRIX_DEPTH
#define TFM_MATRIX_DEPTH 2048
#endif
#define TFM_MATRIX_BAND  8u /* m of a band: as many sums as 32 vector registers hold */
#define TFM_MATRIX_WIDTH 32u

/* One product. a (m, k) is a[m stride + k], or a[k stride + m] when it lies turned. */
struct tfm_matrix {
    __global const float *a;
    __global const uchar *b; /* (k, j) is element k b_stride + j of b_type, or j b_stride + k turned */
    __global const uchar *bias;
    __global float *c, *tile;
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

/* Columns [j, j + columns) of k [k, k + depth) to tile [depth][32]; what lies past them is 0. */
static void tfm_matrix_pack(const struct tfm_matrix *x, uint j, uint columns, uint k, uint depth)
{
    const uint low = min(columns, 16u), high = columns - low;

    for (uint i = 0; i < depth; i++) {
        const ulong at = (k + i) * x->b_stride + j;
        tfm_put16(tfm_matrix_take(x->b, at, low, x->b_type), 2 * i, x->tile);
        tfm_put16(tfm_matrix_take(x->b, at + 16, high, x->b_type), 2 * i + 1, x->tile);
    }
}

/* The same where b lies turned: 16 x 16 at a time. */
static void tfm_matrix_pack_turned(const struct tfm_matrix *x, uint j, uint columns, uint k,
                                   uint depth)
{
    for (uint side = 0; side < 2; side++) {
        const uint lanes = columns > 16 * side ? min(columns - 16 * side, 16u) : 0u;
        for (uint i = 0; i < depth; i += 16) {
            const uint length = min(depth - i, 16u);
            float16 v[16];
#pragma unroll
            for (uint r = 0; r < 16; r++)
                v[r] = tfm_matrix_take(x->b, (j + 16 * side + r) * x->b_stride + k + i,
                                       r < lanes ? length : 0u, x->b_type);
            tfm_transpose(v);
#pragma unroll
            for (uint r = 0; r < 16; r++) {
                if (r < length)
                    tfm_put16(v[r], 2 * (i + r) + side, x->tile);
            }
        }
    }
}

/* sums [2 * 8] += a (0..7, 0..depth) times tile [depth][32]; m past `last` repeat it. */
TFM_INLINE void tfm_matrix_multiply(const int turned, __global const float *a, ulong stride,
                                    uint last, __global const float *tile, uint depth,
                                    float16 *sums)
{
    __global const float *row[TFM_MATRIX_BAND];

#pragma unroll
    for (uint t = 0; t < TFM_MATRIX_BAND; t++)
        row[t] = a + min(t, last) * (turned ? 1 : stride);
    for (uint k = 0; k < depth; k++) {
        const float16 low = vload16(2 * k, tile), high = vload16(2 * k + 1, tile);
#pragma unroll
        for (uint t = 0; t < TFM_MATRIX_BAND; t++) {
            const float16 v = row[t][turned ? k * stride : k];
            sums[2 * t] = fma(v, low, sums[2 * t]);
            sums[2 * t + 1] = fma(v, high, sums[2 * t + 1]);
        }
    }
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
#pragma unroll
        for (uint t = 0; t < TFM_MATRIX_BAND; t++) {
            __global const uchar *from = (__global const uchar *)(c + (ulong)min(t, last) * x->j);
            sums[2 * t] = tfm_matrix_take(from, 0, low, TFM_STEP_F32);
            sums[2 * t + 1] = tfm_matrix_take(from, 16, high, TFM_STEP_F32);
        }
    }
    tfm_matrix_multiply(turned, x->a + (turned ? k * x->a_stride + m : m * x->a_stride + k),
                        x->a_stride, last, x->tile, depth, sums);
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
        (__global const float *)(x + s->at[0]),
        weight + s->at[1],
        bias + s->at[2],
        (__global float *)(y + s->at[3]),
        (__global float *)(tile + s->at[4]) + (ulong)part * s->scratch,
        s->width,
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
        (__global const float *)(dy + s->at[1]),
        weight + s->at[0],
        weight,
        (__global float *)(dx + s->at[2]),
        (__global float *)(tile + s->at[3]) + (ulong)part * s->scratch,
        s->out,
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

    for (uint v = (uint)tfm_share(vectors, part, parts); v < end; v++) {
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
        (__global const float *)(dy + s->at[1]),
        x + s->at[0],
        x,
        (__global float *)(dw + s->at[2]),
        (__global float *)(tile + s->at[4]) + (ulong)part * s->scratch,
        s->out,
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
        tfm_linear_grad_b(product.a, (__global float *)(db + s->at[3]), product.k, s->out, part,
                          parts);
}
