/* SPDX-License-Identifier: MIT
 * swiglu_grad: see lib/ops/swiglu_grad.c
 *   gate, up, dy, dgate, dup [N, width], each F32, F16 or BF16; computed in float, rounded once
 *
 * Both factors come from one exp, of -|gate|, which does not overflow: with e = exp(-|g|) the sigmoids of |g| and
 * -|g| are 1 / (1 + e) and e / (1 + e).
 *
 * Work map: as in add.cl. dgate may be gate. */
#ifndef TFM_VECTOR_CL
#include "vector.cl"
#endif

static void tfm_swiglu_grad(__global const uchar *gate, __global const uchar *up,
                            __global const uchar *dy, __global uchar *dgate, __global uchar *dup,
                            __global const struct tfm_step *s, __global const int *rows, uint part,
                            uint parts)
{
    const ulong n = (ulong)tfm_rows(s, rows) * s->width,
                vectors = (n + TFM_VECTOR - 1) / TFM_VECTOR;
    const ulong end = tfm_end(vectors, part, parts);

    for (ulong v = tfm_first(vectors, part, parts); v < end; v += tfm_stride(parts)) {
        const ulong at = v * TFM_VECTOR;
        const uint left = (uint)min(n - at, (ulong)TFM_VECTOR);
        const tfm_floatv g = tfm_loadv_n(gate, at, left, s->type[0]);
        const tfm_floatv by = tfm_loadv_n(up, at, left, s->type[1]);
        const tfm_floatv above = tfm_loadv_n(dy, at, left, s->type[2]);
        const tfm_floatv e = exp(-fabs(g)), high = 1.0f / (1.0f + e), low = e * high;
        const tfm_intv negative = g < 0.0f, infinite = fabs(g) == INFINITY;
        const tfm_floatv sigmoid = select(high, low, negative);
        /* an infinity times 0 has the limit 0 */
        const tfm_floatv silu = select(g * sigmoid, max(g, 0.0f), infinite);
        const tfm_floatv rest =
            select(silu * select(low, high, negative), (tfm_floatv)(0.0f), infinite);
        tfm_storev_n(by * (above * (sigmoid + rest)), dgate, at, left, s->type[3]);
        tfm_storev_n(above * silu, dup, at, left, s->type[4]);
    }
}

__kernel void tfm_run_swiglu_grad(__global const uchar *gate, __global const uchar *up,
                                  __global const uchar *dy, __global uchar *dgate,
                                  __global uchar *dup, __global const struct tfm_step *steps,
                                  uint index, __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_swiglu_grad(gate + s->at[0], up + s->at[1], dy + s->at[2], dgate + s->at[3], dup + s->at[4],
                    s, rows, get_global_id(0), get_global_size(0));
}
