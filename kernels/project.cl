/* SPDX-License-Identifier: MIT
 * A linear of few rows together with what follows it: y = x W^T + bias, and then, as the step says, the
 * gate swiglu(x W^T, x W2^T), a sum with a residual, rope, a copy to a KV cache.
 *   x [N, in], y [N, out] F32; weights in panels of 16 output rows, as in linear.cl
 *   residual [N, out] F32; table [P, r/2, 2] F32, pos [N] I32; cache [slots, cells, out] F32 or F16
 *
 *   phase   | q: units 0..35   | k: 36..47 | v: 48..59 |    a unit = panels_a_unit panels, e.g. a head
 *   parts   |         0          |          1          |    that rope turns as a whole
 *
 * Work map: the steps of a phase that follow one another share one line of units; a part takes a run
 * of it, so that it reads its weights as one stream. Nothing waits: what is done with the elements of
 * a unit is done by the part that made them. Sums have the order of linear.cl. */
#ifndef TFM_LINEAR_CL
#include "linear.cl"
#endif
#ifndef TFM_LINEAR_INT8_FEW_CL
#include "linear_int8_few.cl"
#endif
#ifndef TFM_ROPE_CL
#include "rope.cl"
#endif
#ifndef TFM_SWIGLU_CL
#include "swiglu.cl"
#endif
#define TFM_PROJECT_CL

/* 1 = with weights of a block type x goes as integers, and what follows has the sums of linear_int8.cl. */
#ifndef TFM_PROJECT_INT8
#define TFM_PROJECT_INT8 0
#endif
#define TFM_IS_INT8(type) (TFM_PROJECT_INT8 && (type) >= TFM_STEP_Q4_0)

/* Number of the cell of a row and its slot; -1 when there is none. */
static int tfm_cell_of(uint row, __global const struct tfm_step *s, __global const int *rows,
                       uint *slot)
{
    const uint sequences = (uint)rows[TFM_ROWS_N_SEQ];
    uint q = 0;

    while (q < sequences && tfm_sequence_end(rows, q) <= row)
        q++;
    if (q == sequences)
        return -1;
    *slot = (uint)tfm_rows_slot(rows)[q];
    const uint cell = (uint)(tfm_rows_past(rows)[q] + ((int)row - tfm_rows_start(rows)[q]));
    return cell < s->cells && *slot < s->slots ? (int)cell : -1;
}

/* `n` elements of a row of [N, width] F32 from column `first` on to its cell. */
static void tfm_append(__global const float *y, __global uchar *cache, const uint type, uint row,
                       uint first, uint n, uint width, __global const struct tfm_step *s,
                       __global const int *rows)
{
    uint slot = 0, i = 0;
    const int cell = tfm_cell_of(row, s, rows, &slot);

    if (cell < 0)
        return;
    y += (ulong)row * width + first;
    const ulong to = ((ulong)slot * s->cells + (uint)cell) * width + first;
    for (; i + 16 <= n; i += 16)
        tfm_store16(vload16(0, y + i), cache, to + i, type);
    for (; i < n; i++)
        tfm_store(y[i], cache, to + i, type);
}

/* raw [N][16] = x times one panel. */
TFM_INLINE void tfm_project_tile(const uint type, const uint tile, __global const uchar *panel,
                                 __global const float *x, __global const float *sums, uint in,
                                 uint row, uint n, __global float *raw)
{
    const uint last = min(n - row, tile) - 1;
    float16 acc[TFM_LINEAR_TILE];

    tfm_linear_panel(type, panel, x + (ulong)row * in, sums + row * (in / TFM_BLOCK), in, last,
                     tile, acc);
#pragma unroll
    for (uint t = 0; t < tile; t++) {
        if (t <= last)
            vstore16(acc[t], row + t, raw);
    }
}

TFM_INLINE void tfm_project_panel(const uint type, __global const uchar *panel,
                                  __global const float *x, __global const float *sums, uint in,
                                  uint n, __global float *raw)
{
    uint row = 0;

    if (TFM_IS_INT8(type)) {
        tfm_int8_few_panel(type, panel, (__global const uchar *)sums, in / TFM_BLOCK, n, raw);
        return;
    }
    if (n == 1) {
        tfm_project_tile(type, 1, panel, x, sums, in, 0, 1, raw);
        return;
    }
    for (; row < n; row += TFM_LINEAR_TILE)
        tfm_project_tile(type, TFM_LINEAR_TILE, panel, x, sums, in, row, n, raw);
}

/* Elements [first, first + 16) of all rows, from the products of their panel to y. */
static void tfm_project_store(__global const float *raw, __global const uchar *bias,
                              __global const uchar *other, __global const uchar *other_bias,
                              __global float *y, uint first, uint n,
                              __global const struct tfm_step *s)
{
    const uint lanes = min(s->out - first, TFM_PANEL);
    float16 b = 0.0f, c = 0.0f;

    if (s->type[2] != TFM_STEP_NONE)
        b = lanes == TFM_PANEL ? tfm_load16(bias, first, s->type[2])
                               : tfm_load_tail(bias, first, lanes, s->type[2]);
    if ((s->project & TFM_PROJECT_GATE) && s->type[6] != TFM_STEP_NONE)
        c = lanes == TFM_PANEL ? tfm_load16(other_bias, first, s->type[6])
                               : tfm_load_tail(other_bias, first, lanes, s->type[6]);
    for (uint row = 0; row < n; row++) {
        const ulong at = (ulong)row * s->out + first;
        float16 v = vload16(row, raw) + b;
        if (s->project & TFM_PROJECT_GATE)
            v = tfm_swiglu_of(v, vload16(n + row, raw) + c);
        if (s->project & TFM_PROJECT_ADD)
            v = (lanes == TFM_PANEL ? tfm_load16(other, at, TFM_STEP_F32)
                                    : tfm_load_tail(other, at, lanes, TFM_STEP_F32)) +
                v;
        if (lanes == TFM_PANEL)
            vstore16(v, 0, y + at);
        else
            tfm_store_tail(v, (__global uchar *)y, at, lanes, TFM_STEP_F32);
    }
}

/* Rope and append for the columns of a unit. */
static void tfm_project_finish(__global float *y, __global const uchar *table,
                               __global const uchar *pos, __global uchar *cache, uint unit, uint n,
                               __global const struct tfm_step *s, __global const int *rows)
{
    const uint columns = s->panels_a_unit * TFM_PANEL, first = unit * columns;

    for (uint row = 0; row < n; row++) {
        if (s->project & TFM_PROJECT_ROPE) {
            __global const float *turn = (__global const float *)table +
                                         (ulong)(uint)((__global const int *)pos)[row] * s->turns +
                                         unit % s->slices * s->rotated;
            tfm_rope_head((__global const uchar *)y, (__global uchar *)y,
                          (ulong)row * s->out + first, turn, s);
        }
        if (s->project & TFM_PROJECT_APPEND)
            tfm_append(y, cache, s->type[7], row, first, columns, s->out, s, rows);
    }
}

/* o: operands x, weight, bias, y, scratch, then (second weight | residual | table), (its bias | pos),
 * cache. */
TFM_INLINE void tfm_project(const uint type, __global uchar *const *o,
                            __global const struct tfm_step *s, __global const int *rows, uint part,
                            uint parts)
{
    const uint n = tfm_rows(s, rows), in = s->width, how = s->project;
    const uint panels = (s->out + TFM_PANEL - 1) / TFM_PANEL;
    const uint units = (panels + s->panels_a_unit - 1) / s->panels_a_unit;
    const uint from = (uint)tfm_share(s->all_units, part, parts);
    const uint to = (uint)tfm_share(s->all_units, part + 1, parts);
    const ulong bytes = tfm_panel_bytes(type, in);
    __global float *own = (__global float *)o[4] + (ulong)part * s->scratch;
    __global const float *x = how & TFM_PROJECT_OWN ? own : (__global const float *)o[0];
    __global float *sums = own + s->sums_at, *raw = own + s->raw_at;

    if (n == 0)
        return;
    if (TFM_IS_INT8(type) && (how & TFM_PROJECT_SUMS))
        tfm_int8_few_quantize(x, (__global uchar *)sums, in, n);
    else if ((type == TFM_STEP_Q4_0 || type == TFM_STEP_Q4_1) && (how & TFM_PROJECT_SUMS))
        tfm_linear_sums(x, sums, (ulong)n * (in / TFM_BLOCK));
    for (uint u = max(from, s->first_unit); u < min(to, s->first_unit + units); u++) {
        const uint unit = u - s->first_unit;
        const uint end = min(panels, (unit + 1) * s->panels_a_unit);
        for (uint p = unit * s->panels_a_unit; p < end; p++) {
            tfm_project_panel(type, o[1] + p * bytes, x, sums, in, n, raw);
            if (how & TFM_PROJECT_GATE)
                tfm_project_panel(type, o[5] + p * bytes, x, sums, in, n, raw + n * TFM_PANEL);
            tfm_project_store(raw, o[2], o[5], o[6], (__global float *)o[3], p * TFM_PANEL, n, s);
        }
        if (how & (TFM_PROJECT_ROPE | TFM_PROJECT_APPEND))
            tfm_project_finish((__global float *)o[3], o[5], o[6], o[7], unit, n, s, rows);
    }
}
