/* SPDX-License-Identifier: MIT
 * embedding: y[n] = table[ids[n]]
 *   table [V, width] packed in panels of 16 rows like the weight of a linear (see step.h), so that
 *   a tied head is one tensor with two readers; ids [N, vectors] I32 in [0, V); y [N, vectors, width] F32
 *
 * Work map, wide: a part takes a run of the N rows; group: a unit is one value. Row id is lane id % 16 of panel
 * id / 16. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif
#define TFM_EMBEDDING_CL

/* One block of 32 values of one lane. */
static void tfm_embedding_q4(__global const uchar *block, int affine, uint lane, __global float *y)
{
    const float d = vload_half(lane, (__global const half *)block);
    const float m = affine ? vload_half(16 + lane, (__global const half *)block) : d * -8.0f;
    __global const uchar *quants = block + (affine ? 64 : 32) + lane * 4;

    for (uint k = 0; k < 16; k++) {
        const uint q = quants[k / 4 * 64 + k % 4];
        y[k] = fma((float)(q & 15u), d, m);
        y[16 + k] = fma((float)(q >> 4), d, m);
    }
}

static void tfm_embedding_q8(__global const uchar *block, uint lane, __global float *y)
{
    const float d = vload_half(lane, (__global const half *)block);
    __global const char *quants = (__global const char *)block + 32 + lane * 4;

    for (uint k = 0; k < 32; k++)
        y[k] = (float)quants[k / 4 * 64 + k % 4] * d;
}

static void tfm_embedding_row(__global const uchar *table, uint id, __global float *y,
                              __global const struct tfm_step *s)
{
    const uint type = s->type[0], width = s->width, lane = id % TFM_PANEL;
    const ulong panel = id / TFM_PANEL, blocks = panel * (width / TFM_BLOCK);

    if (type == TFM_STEP_Q4_0 || type == TFM_STEP_Q4_1) {
        const int affine = type == TFM_STEP_Q4_1;
        const uint bytes = affine ? TFM_PANEL_Q4_1 : TFM_PANEL_Q4_0;
        for (uint b = 0; b < width / TFM_BLOCK; b++)
            tfm_embedding_q4(table + (blocks + b) * bytes, affine, lane, y + b * TFM_BLOCK);
    } else if (type == TFM_STEP_Q8_0) {
        for (uint b = 0; b < width / TFM_BLOCK; b++)
            tfm_embedding_q8(table + (blocks + b) * TFM_PANEL_Q8_0, lane, y + b * TFM_BLOCK);
    } else {
        for (uint k = 0; k < width; k++)
            y[k] = tfm_load(table, (panel * width + k) * TFM_PANEL + lane, type);
    }
}

/* Value k of row id. */
static float tfm_embedding_value(__global const uchar *table, uint id, uint k,
                                 __global const struct tfm_step *s)
{
    const uint type = s->type[0], width = s->width, lane = id % TFM_PANEL, j = k % TFM_BLOCK;
    const ulong panel = id / TFM_PANEL, block = panel * (width / TFM_BLOCK) + k / TFM_BLOCK;

    if (type == TFM_STEP_Q8_0) {
        __global const uchar *from = table + block * TFM_PANEL_Q8_0;
        const char q = ((__global const char *)from)[32 + j / 4 * 64 + lane * 4 + j % 4];
        return (float)q * vload_half(lane, (__global const half *)from);
    }
    if (type == TFM_STEP_Q4_0 || type == TFM_STEP_Q4_1) {
        const int affine = type == TFM_STEP_Q4_1;
        __global const uchar *from = table + block * (affine ? TFM_PANEL_Q4_1 : TFM_PANEL_Q4_0);
        const float d = vload_half(lane, (__global const half *)from);
        const float m = affine ? vload_half(16 + lane, (__global const half *)from) : d * -8.0f;
        const uint i = j % 16;
        const uint q = from[(affine ? 64 : 32) + i / 4 * 64 + lane * 4 + i % 4];
        return fma((float)(j < 16 ? q & 15u : q >> 4), d, m);
    }
    return tfm_load(table, (panel * width + k) * TFM_PANEL + lane, type);
}

static void tfm_embedding(__global const uchar *table, __global const int *ids, __global float *y,
                          __global const struct tfm_step *s, __global const int *rows, uint part,
                          uint parts)
{
    const uint units = TFM_GROUPED ? s->width : 1; /* of a row */
    const ulong n = (ulong)tfm_vectors(s, rows) * units, end = tfm_end(n, part, parts);

    for (ulong unit = tfm_first(n, part, parts); unit < end; unit += tfm_stride(parts)) {
        const ulong row = unit / units;
        if (TFM_GROUPED)
            y[unit] = tfm_embedding_value(table, (uint)ids[row], (uint)(unit % units), s);
        else
            tfm_embedding_row(table, (uint)ids[row], y + row * s->width, s);
    }
}

#ifndef TFM_PERSISTENT /* this function alone is a kernel, too */
__kernel void tfm_run_embedding(__global const uchar *table, __global const uchar *ids,
                                __global uchar *y, __global const struct tfm_step *steps,
                                uint index, __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_embedding(table + s->at[0], (__global const int *)(ids + s->at[1]),
                  (__global float *)(y + s->at[2]), s, rows, get_global_id(0), get_global_size(0));
}
#endif
