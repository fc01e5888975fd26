/* SPDX-License-Identifier: MIT
 * The vectors of the kernels that compute element by element and are written once for both shapes: 16 lanes
 * in the wide shape, for a processor's registers; 4 in the group shape, where work-items side by side load 16
 * bytes each. The lanes never meet, so the results are the same.
 *   tfm_floatv, tfm_intv; tfm_loadv and tfm_storev as tfm_load16 and tfm_store16 in common.cl */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif
#define TFM_VECTOR_CL

#if TFM_GROUPED
#define TFM_VECTOR 4u
typedef float4 tfm_floatv;
typedef int4 tfm_intv;
#define tfm_as_floatv as_float4
#define tfm_as_intv   as_int4

static tfm_floatv tfm_loadv(__global const uchar *p, ulong i, uint type)
{
    if (type == TFM_STEP_F16)
        return vload_half4(0, (__global const half *)p + i);
    if (type == TFM_STEP_BF16)
        return as_float4(convert_uint4(vload4(0, (__global const ushort *)p + i)) << 16);
    return vload4(0, (__global const float *)p + i);
}

static void tfm_storev(tfm_floatv value, __global uchar *p, ulong i, uint type)
{
    if (type == TFM_STEP_F16)
        vstore_half4_rte(value, 0, (__global half *)p + i);
    else if (type == TFM_STEP_BF16)
        vstore4((ushort4)(tfm_to_bf16(value.x), tfm_to_bf16(value.y), tfm_to_bf16(value.z),
                          tfm_to_bf16(value.w)),
                0, (__global ushort *)p + i);
    else
        vstore4(value, 0, (__global float *)p + i);
}

/* n < 4 elements, the rest 0; and back. */
static tfm_floatv tfm_loadv_tail(__global const uchar *p, ulong i, uint n, uint type)
{
    tfm_floatv v = 0.0f;

    v.x = tfm_load(p, i, type);
    if (n > 1)
        v.y = tfm_load(p, i + 1, type);
    if (n > 2)
        v.z = tfm_load(p, i + 2, type);
    return v;
}

static void tfm_storev_tail(tfm_floatv value, __global uchar *p, ulong i, uint n, uint type)
{
    tfm_store(value.x, p, i, type);
    if (n > 1)
        tfm_store(value.y, p, i + 1, type);
    if (n > 2)
        tfm_store(value.z, p, i + 2, type);
}
#else
#define TFM_VECTOR    16u
typedef float16 tfm_floatv;
typedef int16 tfm_intv;
#define tfm_as_floatv as_float16
#define tfm_as_intv   as_int16

static tfm_floatv tfm_loadv(__global const uchar *p, ulong i, uint type)
{
    return tfm_load16(p, i, type);
}

static void tfm_storev(tfm_floatv value, __global uchar *p, ulong i, uint type)
{
    tfm_store16(value, p, i, type);
}

static tfm_floatv tfm_loadv_tail(__global const uchar *p, ulong i, uint n, uint type)
{
    return tfm_load_tail(p, i, n, type);
}

static void tfm_storev_tail(tfm_floatv value, __global uchar *p, ulong i, uint n, uint type)
{
    tfm_store_tail(value, p, i, n, type);
}
#endif

/* The whole vector, or its first n lanes. */
static tfm_floatv tfm_loadv_n(__global const uchar *p, ulong i, uint n, uint type)
{
    return n == TFM_VECTOR ? tfm_loadv(p, i, type) : tfm_loadv_tail(p, i, n, type);
}

static void tfm_storev_n(tfm_floatv value, __global uchar *p, ulong i, uint n, uint type)
{
    if (n == TFM_VECTOR)
        tfm_storev(value, p, i, type);
    else
        tfm_storev_tail(value, p, i, n, type);
}
