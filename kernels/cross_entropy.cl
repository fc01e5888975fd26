/* SPDX-License-Identifier: MIT
 * cross_entropy: what each chunk of classes adds to the loss of a row, and for its gradient the slopes of a chunk
 *   x [N, D] F32, weight [V, D] F32, F16 or BF16, row-major, targets [N] I32, -1 = none
 *   logit = x . weight[class]; with a soft cap S > 0: S tanh(x . weight[class] / S)
 *   partial [N][chunks][4]: largest logit, sum of exp(logit - largest), logit of the target or 0
 *   slopes g [N][columns]: dloss (exp(logit - lse) - [class = target]), 0 without a target; with a cap times
 *   1 - (logit / S)^2
 *   grad_x  dx [N, D] (+)= g W, grad_w  dW [V, D] += g^T x, over the classes of one chunk
 *
 * Work map of partial: a unit is ROWS rows times `columns` classes; a part takes a run of units, chunks outside:
 *
 *   classes   0 ... 31 | 32 ... 63 | ...     32 rows of the weight are packed once for all rows of the unit;
 *   8 rows    8 x 32 logits in 16 vectors    each lane keeps its largest logit and its sum over the strips,
 *   8 rows    ...                            and the lanes are put together when the chunk is done
 *
 * slopes goes as the products of matrix.cl do, grad_x and grad_w are products. A logit is summed over D from
 * left to right; cross_entropy_merge.cl puts the chunks together. */
#ifndef TFM_GATES_CL
#include "gates.cl"
#endif
#ifndef TFM_MATRIX_CL
#include "matrix.cl"
#endif

#define TFM_CROSS_ENTROPY_ROWS 128u

/* Lanes past the last class count for nothing. */
static float16 tfm_cross_entropy_mask(float16 logits, uint lanes)
{
    const float16 lane = (float16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

    return select(logits, (float16)(-INFINITY), lane >= (float16)(float)lanes);
}

/* 8 x 32 logits of rows [m, m + last] and the classes that are packed. */
TFM_INLINE void tfm_cross_entropy_logits(const struct tfm_matrix *x, uint m, uint last,
                                         float16 *logits)
{
#pragma unroll
    for (uint t = 0; t < 2 * TFM_MATRIX_BAND; t++)
        logits[t] = 0.0f;
    tfm_matrix_multiply(0, x->a + m * x->a_stride, x->a_stride, last, x->tile,
                        (x->k + TFM_MATRIX_CELL - 1) / TFM_MATRIX_CELL, logits);
}

/* Caps a logit, softcap > 0; the gradient of it shrinks by the same that comes back: 1 - tanh(z)^2 = 4 s (1 - s)
 * with s = sigmoid(2 z), which keeps its digits far out. */
static float16 tfm_cross_entropy_bend(float16 *logit, float softcap)
{
    const float16 z = *logit / softcap;

    *logit = softcap * tfm_tanh(z);
    return 4.0f * tfm_sigmoid_of(2.0f * z) * tfm_sigmoid_of(-2.0f * z);
}

/* One band of a strip of classes [j, j + columns): state [8][48] = largest, sum, logit of the target. */
TFM_INLINE void tfm_cross_entropy_band(const struct tfm_matrix *x, float softcap, uint m, uint last,
                                       uint j, uint columns, __global const int *targets,
                                       __global float *state)
{
    float16 logits[2 * TFM_MATRIX_BAND];

    tfm_cross_entropy_logits(x, m, last, logits);
#pragma unroll
    for (uint t = 0; t < TFM_MATRIX_BAND; t++) {
        if (t <= last) {
            float16 low = logits[2 * t], high = logits[2 * t + 1];
            if (softcap > 0.0f) {
                low = softcap * tfm_tanh(low / softcap);
                high = softcap * tfm_tanh(high / softcap);
            }
            low = tfm_cross_entropy_mask(low, columns);
            high = tfm_cross_entropy_mask(high, columns > 16 ? columns - 16 : 0);
            __global float *at = state + t * 48;
            const float16 before = vload16(0, at), most = fmax(before, fmax(low, high));
            const float16 mass =
                vload16(1, at) * exp(before - most) + exp(low - most) + exp(high - most);
            const uint target = (uint)targets[m + t] - j; /* far off when it is before j, or none */
            tfm_put16(most, 0, at);
            tfm_put16(mass, 1, at);
            if (target < columns) {
                float lanes[32];
                vstore16(low, 0, lanes);
                vstore16(high, 1, lanes);
                at[32] = lanes[target];
            }
        }
    }
}

/* Rows [first, end) and classes [column, stop): state [ROWS][48] is the part's own. */
static void tfm_cross_entropy_unit(const struct tfm_matrix *x, float softcap, uint first, uint end,
                                   uint column, uint stop, __global const int *targets,
                                   __global float *state, __global float *partial, uint stride)
{
    for (uint row = first; row < end; row++) {
        __global float *at = state + (row - first) * 48;
        tfm_put16((float16)(-FLT_MAX), 0, at); /* no infinity: minus itself it would be NaN */
        tfm_put16((float16)(0.0f), 1, at);
        at[32] = 0.0f;
    }
    for (uint j = column; j < stop; j += TFM_MATRIX_WIDTH) {
        const uint columns = min(stop - j, TFM_MATRIX_WIDTH);
        tfm_matrix_pack_turned(x, j, columns, 0, x->k);
        for (uint m = first; m < end; m += TFM_MATRIX_BAND)
            tfm_cross_entropy_band(x, softcap, m, min(end - m, TFM_MATRIX_BAND) - 1, j, columns,
                                   targets, state + (m - first) * 48);
    }
    for (uint row = first; row < end; row++, partial += stride) {
        __global const float *at = state + (row - first) * 48;
        const float16 lanes = vload16(0, at);
        const float most = tfm_max16(lanes);
        partial[0] = most;
        partial[1] = tfm_sum16(vload16(1, at) * exp(lanes - most));
        partial[2] = at[32];
    }
}

__kernel void tfm_run_cross_entropy(__global const uchar *x, __global const uchar *weight,
                                    __global const uchar *targets, __global uchar *partial,
                                    __global uchar *scratch, __global const struct tfm_step *steps,
                                    uint index, __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint part = get_group_id(0), parts = get_num_groups(0);
    __global float *tile = (__global float *)(scratch + s->at[4]) + (ulong)part * s->scratch;
    const struct tfm_matrix product = {(__global const tfm_cell *)(x + s->at[0]),
                                       weight + s->at[1],
                                       weight,
                                       tile,
                                       (__global tfm_cell *)tile,
                                       TFM_MATRIX_STRIDE(s->width),
                                       s->width,
                                       s->type[1],
                                       TFM_STEP_NONE,
                                       tfm_rows(s, rows),
                                       s->width,
                                       s->out};
    const uint tiles = (product.m + TFM_CROSS_ENTROPY_ROWS - 1) / TFM_CROSS_ENTROPY_ROWS;
    const uint chunks = (s->out + s->columns - 1) / s->columns;
    const ulong units = (ulong)tiles * chunks, end = tfm_share(units, part + 1, parts);

    for (ulong unit = tfm_share(units, part, parts); unit < end; unit++) {
        const uint chunk = (uint)(unit / tiles),
                   first = (uint)(unit % tiles) * TFM_CROSS_ENTROPY_ROWS;
        const uint column = chunk * s->columns;
        tfm_cross_entropy_unit(
            &product, s->softcap, first, min(first + TFM_CROSS_ENTROPY_ROWS, product.m), column,
            min(column + s->columns, s->out), (__global const int *)(targets + s->at[2]),
            tile + TFM_MATRIX_WIDTH * s->width,
            (__global float *)(partial + s->at[3]) + ((ulong)first * chunks + chunk) * 4,
            4 * chunks);
    }
}

/* One band of slopes: rows [m, m + last], columns [i, i + columns) of g, whose column 0 is class `column`. */
TFM_INLINE void tfm_cross_entropy_slopes(const struct tfm_matrix *x, float softcap, uint m,
                                         uint last, uint i, uint columns, uint column,
                                         __global const int *targets, __global const float *lse,
                                         __global const float *dloss, uint stride)
{
    const float16 lane = (float16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    float16 logits[2 * TFM_MATRIX_BAND];

    tfm_cross_entropy_logits(x, m, last, logits);
#pragma unroll
    for (uint t = 0; t < TFM_MATRIX_BAND; t++) {
        if (t <= last) {
            const int target = targets[m + t];
            const float16 base = lse[m + t];
            float16 low = logits[2 * t], low_slope = dloss[m + t];
            float16 high = logits[2 * t + 1], high_slope = low_slope;
            const float16 own = (float)(target - (int)(column + i));
            const float16 none = (float)target;
            if (softcap > 0.0f) {
                low_slope *= tfm_cross_entropy_bend(&low, softcap);
                high_slope *= tfm_cross_entropy_bend(&high, softcap);
            }
            low = exp(low - base) - select((float16)(0.0f), (float16)(1.0f), lane == own);
            high = exp(high - base) - select((float16)(0.0f), (float16)(1.0f), lane + 16.0f == own);
            low = select(low * low_slope, (float16)(0.0f), none < 0.0f);
            high = select(high * high_slope, (float16)(0.0f), none < 0.0f);
            __global float *to = x->c + (ulong)(m + t) * stride + i;
            tfm_matrix_put(low, to, min(columns, 16u));
            tfm_matrix_put(high, to + 16, columns > 16 ? columns - 16 : 0u);
        }
    }
}

__kernel void tfm_run_cross_entropy_slopes(__global const uchar *x, __global const uchar *weight,
                                           __global const uchar *targets, __global const uchar *lse,
                                           __global const uchar *dloss, __global uchar *g,
                                           __global uchar *scratch,
                                           __global const struct tfm_step *steps, uint index,
                                           __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint part = get_group_id(0), parts = get_num_groups(0);
    const struct tfm_matrix product = {(__global const tfm_cell *)(x + s->at[0]),
                                       weight + s->at[1],
                                       weight,
                                       (__global float *)(g + s->at[5]),
                                       (__global tfm_cell *)(scratch + s->at[6]) +
                                           (ulong)part * s->scratch,
                                       TFM_MATRIX_STRIDE(s->width),
                                       s->width,
                                       s->type[1],
                                       TFM_STEP_NONE,
                                       tfm_rows(s, rows),
                                       s->width,
                                       s->columns};
    const uint bands = (product.m + TFM_MATRIX_BAND - 1) / TFM_MATRIX_BAND;
    const uint strips = (s->columns + TFM_MATRIX_WIDTH - 1) / TFM_MATRIX_WIDTH;
    const ulong units = (ulong)strips * bands, end = tfm_share(units, part + 1, parts);

    for (ulong unit = tfm_share(units, part, parts); unit < end;) {
        const uint i = (uint)(unit / bands) * TFM_MATRIX_WIDTH, first = (uint)(unit % bands);
        const uint stop = (uint)min((ulong)bands, first + (end - unit));
        const uint columns = min(s->columns - i, TFM_MATRIX_WIDTH);
        tfm_matrix_pack_turned(&product, s->column + i, columns, 0, s->width);
        for (uint t = first; t < stop; t++)
            tfm_cross_entropy_slopes(&product, s->softcap, t * TFM_MATRIX_BAND,
                                     min(product.m - t * TFM_MATRIX_BAND, TFM_MATRIX_BAND) - 1, i,
                                     columns, s->column, (__global const int *)(targets + s->at[2]),
                                     (__global const float *)(lse + s->at[3]),
                                     (__global const float *)(dloss + s->at[4]), s->columns);
        unit += stop - first;
    }
}

__kernel void tfm_run_cross_entropy_grad_w(__global const uchar *g, __global const uchar *x,
                                           __global uchar *dweight, __global uchar *tile,
                                           __global const struct tfm_step *steps, uint index,
                                           __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint part = get_group_id(0), parts = get_num_groups(0);
    const struct tfm_matrix product = {
        (__global const tfm_cell *)(g + s->at[0]),
        x + s->at[1],
        x,
        (__global float *)(dweight + s->at[2]) + (ulong)s->column * s->width,
        (__global tfm_cell *)(tile + s->at[3]) + (ulong)part * s->scratch,
        TFM_MATRIX_STRIDE_TURNED(s->columns, tfm_rows(s, rows)),
        s->width,
        TFM_STEP_F32,
        TFM_STEP_NONE,
        s->columns,
        tfm_rows(s, rows),
        s->width};

    tfm_matrix(1, 0, 1, &product, part, parts);
}

__kernel void tfm_run_cross_entropy_grad_x(__global const uchar *g, __global const uchar *weight,
                                           __global uchar *dx, __global uchar *tile,
                                           __global const struct tfm_step *steps, uint index,
                                           __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint part = get_group_id(0), parts = get_num_groups(0);
    const ulong skip = (ulong)s->column * s->width * (s->type[1] == TFM_STEP_F32 ? 4 : 2);
    const struct tfm_matrix product = {(__global const tfm_cell *)(g + s->at[0]),
                                       weight + s->at[1] + skip,
                                       weight,
                                       (__global float *)(dx + s->at[2]),
                                       (__global tfm_cell *)(tile + s->at[3]) +
                                           (ulong)part * s->scratch,
                                       TFM_MATRIX_STRIDE(s->columns),
                                       s->width,
                                       s->type[1],
                                       TFM_STEP_NONE,
                                       tfm_rows(s, rows),
                                       s->columns,
                                       s->width};

    tfm_matrix(0, 0, s->column > 0, &product, part, parts);
}
