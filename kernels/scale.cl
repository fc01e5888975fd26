/* SPDX-License-Identifier: MIT
 * scale: y = factor * x, or softcap * tanh(factor * x / softcap) when softcap > 0
 *   x, y [N, width], each F32, F16 or BF16; computed in float, rounded once
 *
 * Work map: as in add.cl. y may be x. */
#ifndef TFM_GATES_CL
#include "gates.cl"
#endif

static float16 tfm_scale_of(float16 x, __global const struct tfm_step *s)
{
    const float16 y = x * s->scale;
    return s->softcap > 0.0f ? s->softcap * tfm_tanh(y / s->softcap) : y;
}

static void tfm_scale(__global const uchar *x, __global uchar *y, __global const struct tfm_step *s,
                      __global const int *rows, uint part, uint parts)
{
    const ulong n = (ulong)tfm_rows(s, rows) * s->width;
    const ulong vectors = n / 16;
    const ulong end = tfm_share(vectors, part + 1, parts);

    for (ulong v = tfm_share(vectors, part, parts); v < end; v++)
        tfm_store16(tfm_scale_of(tfm_load16(x, v * 16, s->type[0]), s), y, v * 16, s->type[1]);
    if (part + 1 == parts && n % 16 != 0) {
        const uint left = (uint)(n % 16);
        tfm_store_tail(tfm_scale_of(tfm_load_tail(x, vectors * 16, left, s->type[0]), s), y,
                       vectors * 16, left, s->type[1]);
    }
}

__kernel void tfm_run_scale(__global const uchar *x, __global uchar *y,
                            __global const struct tfm_step *steps, uint index,
                            __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_scale(x + s->at[0], y + s->at[1], s, rows, get_group_id(0), get_num_groups(0));
}
