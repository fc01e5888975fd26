/* SPDX-License-Identifier: MIT
 * cross_entropy: what each chunk of classes adds to the loss of a row, and for its gradient the slopes of a chunk of
 * rows
 *   x [N, D] F32, weight [V, D] F32, F16 or BF16, row-major, targets [N] I32, -1 = none
 *   logit = x . weight[class]; with a soft cap S > 0: S tanh(x . weight[class] / S)
 *   partial [rows][chunks][4]: largest logit, sum of exp(logit - largest), logit of the target or 0
 *   logits [rows][TFM_LOGITS_STRIDE(V)]: before the cap, kept for the slopes if that operand is there
 *   slopes g, in their place: dloss (exp(logit - lse) - [class = target]), 0 without a target; with a cap times
 *   1 - (logit / S)^2
 *   grad_x  dx = g W, grad_w  dW [V, D] += g^T x
 * rows = those of a chunk [s->first, s->first + s->most).
 *
 * Work map of partial: a unit is ROWS rows times `columns` classes; a part takes a run of units, chunks outside:
 *
 *   classes   0 ... 31 | 32 ... 63 | ...     32 rows of the weight are packed once for all rows of the unit;
 *   8 rows    8 x 32 logits in 16 vectors    each lane keeps its largest logit and its sum over the strips,
 *   8 rows    ...                            and the lanes are put together when the chunk is done
 *
 * A logit is summed over D from left to right; cross_entropy_merge.cl puts the chunks together. Of slopes a unit is
 * 8 rows times `columns` classes, gone through by 32 of all 8 rows, so that memory is read and written in few streams; for products of bf16 it leaves them rounded, in both orders that matrix.cl reads.
 * grad_x and grad_w are products of matrix.cl. */
#ifndef TFM_GATES_CL
#include "gates.cl"
#endif
#ifndef TFM_MATRIX_CL
#include "matrix.cl"
#endif

#define TFM_CROSS_ENTROPY_ROWS 128u

/* Strides of slopes as a product reads them: from row to row; turned. */
#ifdef TFM_BF16_WAY
#define TFM_SLOPES_STRIDE(classes)       TFM_BF16_STRIDE(classes)
#define TFM_SLOPES_TURNED(classes, rows) TFM_MATRIX_STRIDE_TURNED(classes, rows)
#else
#define TFM_SLOPES_STRIDE(classes)       TFM_LOGITS_STRIDE(classes)
#define TFM_SLOPES_TURNED(classes, rows) TFM_LOGITS_STRIDE(classes)
#endif

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

/* One band of a strip of classes [j, j + columns): state [8][48] = largest, sum, logit of the target. The logits go
 * to x->c, if that is not 0. */
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
            if (x->c) {
                __global float *to = x->c + (ulong)(m + t) * TFM_LOGITS_STRIDE(x->j) + j;
                tfm_put16(low, 0, to);
                tfm_put16(high, 1, to);
            }
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
                                    __global uchar *logits, __global uchar *scratch,
                                    __global const struct tfm_step *steps, uint index,
                                    __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint part = get_group_id(0), parts = get_num_groups(0);
    __global float *tile = (__global float *)(scratch + s->at[5]) + (ulong)part * s->scratch;
    const struct tfm_matrix product = {
        (__global const tfm_cell *)(x + s->at[0]) + (ulong)s->first * TFM_MATRIX_STRIDE(s->width),
        weight + s->at[1],
        weight,
        s->type[4] == TFM_STEP_NONE ? (__global float *)0 : (__global float *)(logits + s->at[4]),
        (__global tfm_cell *)tile,
        TFM_MATRIX_STRIDE(s->width),
        s->width,
        s->type[1],
        TFM_STEP_NONE,
        tfm_chunk_rows(s, rows),
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
            min(column + s->columns, s->out), (__global const int *)(targets + s->at[2]) + s->first,
            tile + TFM_MATRIX_WIDTH * s->width,
            (__global float *)(partial + s->at[3]) + ((ulong)first * chunks + chunk) * 4,
            4 * chunks);
    }
}

/* Slopes g [2] of 32 or fewer classes of a row, from the logits of them; lanes past the last are 0. target: among
 * them, counted from the first; `none`: the row has none. */
static void tfm_cross_entropy_slopes(__global const float *logits, float softcap, int target,
                                     int none, float lse, float dloss, uint columns, float16 *g)
{
    const float16 lane = (float16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);

    for (uint side = 0; side < 2; side++) {
        float16 logit = vload16(side, logits), slope = dloss;
        const float16 at = lane + 16.0f * (float)side;
        if (softcap > 0.0f)
            slope *= tfm_cross_entropy_bend(&logit, softcap);
        slope *= exp(logit - lse) -
                 select((float16)(0.0f), (float16)(1.0f), at == (float16)(float)target);
        g[side] = select(slope, (float16)(0.0f), at >= (float16)(none ? 0.0f : (float)columns));
    }
}

/* Where the slopes of rows [row, row + 1] and classes [i, i + columns) go; those of a row past the last, `rows`, are
 * 0. g [row][2]. f32: straight is where the logits lie. */
TFM_INLINE void tfm_cross_entropy_put(const float16 *g, uint row, uint rows, uint i, uint classes,
                                      __global uchar *straight, __global uchar *turned)
{
    const uint both = row + 1 < rows;
#ifdef TFM_BF16_WAY
    __global uint *to = (__global uint *)straight + (ulong)row * TFM_SLOPES_STRIDE(classes) + i / 2;
    const uint cells = TFM_SLOPES_TURNED(classes, rows), left = (classes - i + 7) / 8;
    const uint16 low = tfm_bf16_round(g[0]) | tfm_bf16_round(g[2]) << 16;
    const uint16 high = tfm_bf16_round(g[1]) | tfm_bf16_round(g[3]) << 16;
    __global uint *cell = (__global uint *)turned + ((ulong)(i / 8) * cells + row / 2) * 8;

    tfm_put16_uint(tfm_bf16_join(g[0], g[1]), 0, to);
    if (both)
        tfm_put16_uint(tfm_bf16_join(g[2], g[3]), 0, to + TFM_SLOPES_STRIDE(classes));
    vstore8(low.lo, 0, cell);
    if (left > 1)
        vstore8(as_uint8(tfm_high(as_float16(low))), cells, cell);
    if (left > 2)
        vstore8(high.lo, 2 * cells, cell);
    if (left > 3)
        vstore8(as_uint8(tfm_high(as_float16(high))), 3 * cells, cell);
#else
    __global float *to = (__global float *)straight + (ulong)row * TFM_SLOPES_STRIDE(classes) + i;

    (void)turned;
    for (uint t = 0; t < 1 + both; t++, to += TFM_SLOPES_STRIDE(classes)) {
        tfm_put16(g[2 * t], 0, to);
        tfm_put16(g[2 * t + 1], 1, to);
    }
#endif
}

__kernel void tfm_run_cross_entropy_slopes(__global const uchar *targets, __global const uchar *lse,
                                           __global const uchar *dloss,
                                           __global const uchar *logits, __global uchar *straight,
                                           __global uchar *turned,
                                           __global const struct tfm_step *steps, uint index,
                                           __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    __global const int *target = (__global const int *)(targets + s->at[0]) + s->first;
    __global const float *base = (__global const float *)(lse + s->at[1]) + s->first;
    __global const float *up = (__global const float *)(dloss + s->at[2]) + s->first;
    const uint part = get_group_id(0), parts = get_num_groups(0), n = tfm_chunk_rows(s, rows);
    const uint bands = (n + TFM_MATRIX_BAND - 1) / TFM_MATRIX_BAND;
    const uint chunks = (s->out + s->columns - 1) / s->columns;
    const ulong units = (ulong)chunks * bands, end = tfm_share(units, part + 1, parts);

    for (ulong unit = tfm_share(units, part, parts); unit < end; unit++) {
        const uint column = (uint)(unit / bands) * s->columns;
        const uint first = (uint)(unit % bands) * TFM_MATRIX_BAND;
        const uint stop = min(first + TFM_MATRIX_BAND, n);
        for (uint i = column; i < min(column + s->columns, s->out); i += TFM_MATRIX_WIDTH) {
            const uint columns = min(s->out - i, TFM_MATRIX_WIDTH);
            for (uint row = first; row < stop; row += 2) {
                float16 g[4] = {0.0f, 0.0f, 0.0f, 0.0f};
                for (uint t = 0; t < min(stop - row, 2u); t++)
                    tfm_cross_entropy_slopes((__global const float *)(logits + s->at[3]) +
                                                 (ulong)(row + t) * TFM_LOGITS_STRIDE(s->out) + i,
                                             s->softcap, target[row + t] - (int)i,
                                             target[row + t] < 0, base[row + t], up[row + t],
                                             columns, g + 2 * t);
                tfm_cross_entropy_put(g, row, n, i, s->out, straight + s->at[4], turned + s->at[5]);
            }
        }
    }
}

__kernel void tfm_run_cross_entropy_grad_w(__global const uchar *g, __global const uchar *x,
                                           __global uchar *dweight, __global uchar *tile,
                                           __global const struct tfm_step *steps, uint index,
                                           __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint part = get_group_id(0), parts = get_num_groups(0), n = tfm_chunk_rows(s, rows);
    const struct tfm_matrix product = {(__global const tfm_cell *)(g + s->at[0]),
                                       x + s->at[1] + (ulong)s->first * s->width * 4,
                                       x,
                                       (__global float *)(dweight + s->at[2]),
                                       (__global tfm_cell *)(tile + s->at[3]) +
                                           (ulong)part * s->scratch,
                                       TFM_SLOPES_TURNED(s->out, n),
                                       s->width,
                                       TFM_STEP_F32,
                                       TFM_STEP_NONE,
                                       s->out,
                                       n,
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
    const struct tfm_matrix product = {
        (__global const tfm_cell *)(g + s->at[0]),
        weight + s->at[1],
        weight,
        (__global float *)(dx + s->at[2]) + (ulong)s->first * s->width,
        (__global tfm_cell *)(tile + s->at[3]) + (ulong)part * s->scratch,
        TFM_SLOPES_STRIDE(s->out),
        s->width,
        s->type[1],
        TFM_STEP_NONE,
        tfm_chunk_rows(s, rows),
        s->out,
        s->width};

    tfm_matrix(0, 0, 0, &product, part, parts);
}
