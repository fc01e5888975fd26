/* SPDX-License-Identifier: MIT
 * unpack: a panel of packed weights (see step.h) as floats, for the kernels that multiply many rows
 *   panel, 16 output rows of `in` values -> y [depth][ld], columns 0..15: values [k, k + depth)
 *
 *   lane    0 ... 15        one vector a k; of a block type, k and depth are whole blocks
 *   y[i]    value k + i of each row */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif
#define TFM_UNPACK_CL

/* Where a panel begins. */
static __global const uchar *tfm_panel(uint type, __global const uchar *weight, uint panel, uint in)
{
    return weight + panel * tfm_panel_bytes(type, in);
}

static void tfm_unpack_q4(__global const uchar *panel, int affine, uint depth, __global float *y,
                          ulong ld)
{
    for (uint k = 0; k < depth; k += TFM_BLOCK, panel += affine ? TFM_PANEL_Q4_1 : TFM_PANEL_Q4_0) {
        const float16 d = vload_half16(0, (__global const half *)panel);
        const float16 m = affine ? vload_half16(1, (__global const half *)panel) : d * -8.0f;
        __global const uint *quants = (__global const uint *)(panel + (affine ? 64 : 32));
        for (uint j = 0; j < 4; j++) {
            const uint16 q = vload16(j, quants);
            for (uint i = 0; i < 4; i++) {
                const float16 low = convert_float16(as_int16((q >> (8 * i)) & 15u));
                const float16 high = convert_float16(as_int16((q >> (8 * i + 4)) & 15u));
                const ulong at = k + 4 * j + i;
                tfm_put16(fma(low, d, m), 0, y + at * ld);
                tfm_put16(fma(high, d, m), 0, y + (at + 16) * ld);
            }
        }
    }
}

static void tfm_unpack_q8(__global const uchar *panel, uint depth, __global float *y, ulong ld)
{
    for (uint k = 0; k < depth; k += TFM_BLOCK, panel += TFM_PANEL_Q8_0) {
        const float16 d = vload_half16(0, (__global const half *)panel);
        __global const int *quants = (__global const int *)(panel + 32);
        for (uint j = 0; j < 8; j++) {
            const int16 q = vload16(j, quants);
            for (uint i = 0; i < 4; i++)
                tfm_put16(convert_float16((q << (24 - 8 * i)) >> 24) * d, 0,
                          y + (ulong)(k + 4 * j + i) * ld);
        }
    }
}

static void tfm_unpack(uint type, __global const uchar *panel, uint k, uint depth,
                       __global float *y, ulong ld)
{
    panel += tfm_panel_bytes(type, k);
    if (type == TFM_STEP_Q4_0 || type == TFM_STEP_Q4_1)
        tfm_unpack_q4(panel, type == TFM_STEP_Q4_1, depth, y, ld);
    else if (type == TFM_STEP_Q8_0)
        tfm_unpack_q8(panel, depth, y, ld);
    else
        for (uint i = 0; i < depth; i++)
            tfm_put16(tfm_load16(panel, (ulong)i * TFM_PANEL, type), 0, y + i * ld);
}
