/* SPDX-License-Identifier: MIT
 * What every kernel file shares: the step table, the rows of a run, the split of work among parts,
 * and loads and stores of the activation types (F32, F16, BF16) with float inside.
 *
 * An #include in quotes means a file of this folder. The host puts it in front of the file itself and
 * the guard around it drops it, since OpenCL knows no folders. Memory is reached by base pointer and byte offset; no alignment beyond that of
 * the element is assumed. */
#ifndef TFM_COMMON_CL
#define TFM_COMMON_CL

#ifndef TFM_STEP_H
#include "step.h"
#endif

/* A helper that must vanish into its caller, so that its constant arguments unroll its loops. */
#define TFM_INLINE static inline __attribute__((always_inline))

/* 1 = the device has no vectors: its compiler makes 16 scalars of each of ours, and what is written out
 * several times, so that a vector that is loaded serves many sums, only becomes code that it takes
 * minutes over. The kernels then have the smallest tile alone. No sum is added up in another order. */
#ifndef TFM_NARROW
#define TFM_NARROW 0
#endif

/* Rows of this run that the step works on. */
static uint tfm_rows(__global const struct tfm_step *s, __global const int *rows)
{
    return (uint)(s->rows == TFM_STEP_OUT_ROWS ? rows[TFM_ROWS_N_OUT] : rows[TFM_ROWS_N]);
}

/* Vectors of this run, of an op that acts on each vector of a row. */
static uint tfm_vectors(__global const struct tfm_step *s, __global const int *rows)
{
    return tfm_rows(s, rows) * s->vectors;
}

/* Those of them in a chunk of rows: how many from s->first on. */
static uint tfm_chunk_rows(__global const struct tfm_step *s, __global const int *rows)
{
    const uint n = tfm_rows(s, rows), left = n > s->first ? n - s->first : 0;

    return s->most ? min(left, s->most) : left;
}

/* The three lists of sequences and the list of kept rows. */
static __global const int *tfm_rows_slot(__global const int *rows)
{
    return rows + TFM_ROWS_LISTS;
}

static __global const int *tfm_rows_start(__global const int *rows)
{
    return rows + TFM_ROWS_LISTS + rows[TFM_ROWS_S];
}

static __global const int *tfm_rows_past(__global const int *rows)
{
    return rows + TFM_ROWS_LISTS + 2 * rows[TFM_ROWS_S];
}

static __global const int *tfm_rows_out(__global const int *rows)
{
    return rows + TFM_ROWS_LISTS + 3 * rows[TFM_ROWS_S];
}

/* One row past the last of sequence q. */
static uint tfm_sequence_end(__global const int *rows, uint q)
{
    return (uint)(q + 1 < (uint)rows[TFM_ROWS_N_SEQ] ? tfm_rows_start(rows)[q + 1]
                                                     : rows[TFM_ROWS_N]);
}

/* Pieces of `cells` cells of the longest sequence of this run. */
static uint tfm_longest(__global const int *rows, uint cells)
{
    uint most = 0;

    for (uint n = 0; n < (uint)rows[TFM_ROWS_N_SEQ]; n++)
        most = max(most, (uint)tfm_rows_past(rows)[n] + tfm_sequence_end(rows, n) -
                             (uint)tfm_rows_start(rows)[n]);
    return (most + cells - 1) / cells;
}

/* Bytes of `k` values of each row of a panel of packed weights (see step.h); of a block type, whole blocks. */
TFM_INLINE ulong tfm_panel_bytes(const uint type, uint k)
{
    const uint column = type == TFM_STEP_Q4_0   ? TFM_PANEL_Q4_0
                        : type == TFM_STEP_Q4_1 ? TFM_PANEL_Q4_1
                        : type == TFM_STEP_Q8_0 ? TFM_PANEL_Q8_0
                        : type == TFM_STEP_F32  ? 4 * TFM_PANEL
                                                : 2 * TFM_PANEL;

    return (ulong)(type >= TFM_STEP_Q4_0 ? k / TFM_BLOCK : k) * column;
}

/* First of the units [0, n) that belong to `part`; its end is the first of part + 1. */
static ulong tfm_share(ulong n, uint part, uint parts)
{
    return n * part / parts;
}

/* 1 = the group shape, in which a part is a work-item among many that run side by side. */
#ifndef TFM_GROUPED
#define TFM_GROUPED 0
#endif

/* The units of a part in a kernel that is written once for both shapes, from tfm_first on in steps of
 * tfm_stride up to tfm_end. Wide: a run of neighbours, which a processor fetches ahead. Group: every
 * parts-th, so that work-items side by side reach for memory side by side.
 *
 *   wide    0 0 0 1 1 1 2 2 2        group    0 1 2 0 1 2 0 1 2 */
static ulong tfm_first(ulong n, uint part, uint parts)
{
    return TFM_GROUPED ? part : tfm_share(n, part, parts);
}

static ulong tfm_end(ulong n, uint part, uint parts)
{
    return TFM_GROUPED ? n : tfm_share(n, part + 1, parts);
}

static ulong tfm_stride(uint parts)
{
    return TFM_GROUPED ? parts : 1;
}

/* bf16 is the upper half of a float. Rounds to nearest even; a NaN stays one. */
static ushort tfm_to_bf16(float value)
{
    const uint bits = as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (ushort)((bits >> 16) | 0x40u);
    return (ushort)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static ushort16 tfm_to_bf16x16(float16 value)
{
    const uint16 bits = as_uint16(value);
    const uint16 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const uint16 nan = (bits >> 16) | 0x40u;
    return convert_ushort16(select(rounded, nan, as_uint16((bits & 0x7fffffffu) > 0x7f800000u)));
}

/* As vstore16, but one access: some compilers make four of a vstore16, and a vector that is read again soon
 * must then wait for all of them. */
typedef float16 tfm_float16_any __attribute__((aligned(4)));
typedef uint16 tfm_uint16_any __attribute__((aligned(4)));

static void tfm_put16(float16 value, ulong i, __global float *p)
{
    *(__global tfm_float16_any *)(p + 16 * i) = value;
}

static void tfm_put16_uint(uint16 value, ulong i, __global uint *p)
{
    *(__global tfm_uint16_any *)(p + 16 * i) = value;
}

/* Element i, or elements i..i+15, of an array of `type` at p. */
static float tfm_load(__global const uchar *p, ulong i, uint type)
{
    if (type == TFM_STEP_F16)
        return vload_half(i, (__global const half *)p);
    if (type == TFM_STEP_BF16)
        return as_float((uint)((__global const ushort *)p)[i] << 16);
    return ((__global const float *)p)[i];
}

static float16 tfm_load16(__global const uchar *p, ulong i, uint type)
{
    if (type == TFM_STEP_F16)
        return vload_half16(0, (__global const half *)p + i);
    if (type == TFM_STEP_BF16)
        return as_float16(convert_uint16(vload16(0, (__global const ushort *)p + i)) << 16);
    return vload16(0, (__global const float *)p + i);
}

static void tfm_store(float value, __global uchar *p, ulong i, uint type)
{
    if (type == TFM_STEP_F16)
        vstore_half_rte(value, i, (__global half *)p);
    else if (type == TFM_STEP_BF16)
        ((__global ushort *)p)[i] = tfm_to_bf16(value);
    else
        ((__global float *)p)[i] = value;
}

static void tfm_store16(float16 value, __global uchar *p, ulong i, uint type)
{
    if (type == TFM_STEP_F16)
        vstore_half16_rte(value, 0, (__global half *)p + i);
    else if (type == TFM_STEP_BF16)
        vstore16(tfm_to_bf16x16(value), 0, (__global ushort *)p + i);
    else
        tfm_put16(value, 0, (__global float *)p + i);
}

/* n < 16 elements, the rest 0; and back. */
static float16 tfm_load_tail(__global const uchar *p, ulong i, uint n, uint type)
{
    float lanes[16];
    for (uint j = 0; j < 16; j++)
        lanes[j] = j < n ? tfm_load(p, i + j, type) : 0.0f;
    return vload16(0, lanes);
}

static void tfm_store_tail(float16 value, __global uchar *p, ulong i, uint n, uint type)
{
    float lanes[16];
    vstore16(value, 0, lanes);
    for (uint j = 0; j < n; j++)
        tfm_store(lanes[j], p, i + j, type);
}

/* Halves and every second lane of 16. Defined as 1, TFM_LANE_BY_LANE says the same without shuffles: the simulator
 * that looks for uninitialized memory takes what comes from number 11 of a shuffle's lanes for such
 * (tests/portability/uninitialized.sh). The other numbers are right, so lo and even are said as ever. */
#ifndef TFM_LANE_BY_LANE
#define TFM_LANE_BY_LANE 0
#endif

TFM_INLINE float8 tfm_high(float16 v)
{
#if TFM_LANE_BY_LANE
    return (float8)(v.s8, v.s9, v.sa, v.sb, v.sc, v.sd, v.se, v.sf);
#else
    return v.hi;
#endif
}

TFM_INLINE float8 tfm_odd(float16 v)
{
#if TFM_LANE_BY_LANE
    return (float8)(v.s1, v.s3, v.s5, v.s7, v.s9, v.sb, v.sd, v.sf);
#else
    return v.odd;
#endif
}

/* Two halves side by side. */
TFM_INLINE float16 tfm_join(float8 lo, float8 hi)
{
#if TFM_LANE_BY_LANE
    return (float16)(lo.s0, lo.s1, lo.s2, lo.s3, lo.s4, lo.s5, lo.s6, lo.s7, hi.s0, hi.s1, hi.s2,
                     hi.s3, hi.s4, hi.s5, hi.s6, hi.s7);
#else
    float16 v;
    v.lo = lo;
    v.hi = hi;
    return v;
#endif
}

/* Lanes of a and of b in turn. */
TFM_INLINE float16 tfm_zip(float8 a, float8 b)
{
#if TFM_LANE_BY_LANE
    return (float16)(a.s0, b.s0, a.s1, b.s1, a.s2, b.s2, a.s3, b.s3, a.s4, b.s4, a.s5, b.s5, a.s6,
                     b.s6, a.s7, b.s7);
#else
    float16 v;
    v.even = a;
    v.odd = b;
    return v;
#endif
}

/* value rounded to the nearest integer, ties to even, for |value| < 2^22: in the low bits of the result (its
 * value is 1.5 2^23 more). Conversions and rint of vectors are calls for each lane on some devices. */
#define TFM_ROUNDING 12582912.0f
TFM_INLINE float16 tfm_round_bits(float16 value)
{
    return value + TFM_ROUNDING;
}

/* Transposes 16 x 16 floats in place: four rounds of a perfect shuffle of the 16 vectors. */
TFM_INLINE void tfm_transpose(float16 *v)
{
    float16 next[16];

#pragma unroll
    for (uint round = 0; round < 4; round++) {
#pragma unroll
        for (uint i = 0; i < 8; i++) {
            next[2 * i] = tfm_zip(v[i].lo, v[i + 8].lo);
            next[2 * i + 1] = tfm_zip(tfm_high(v[i]), tfm_high(v[i + 8]));
        }
#pragma unroll
        for (uint i = 0; i < 16; i++)
            v[i] = next[i];
    }
}

/* Sum of the lanes, always in the same order. */
static float tfm_sum16(float16 v)
{
    const float8 a = v.lo + tfm_high(v);
    const float4 b = a.lo + a.hi;
    const float2 c = b.lo + b.hi;
    return c.x + c.y;
}

static float tfm_max16(float16 v)
{
    const float8 a = fmax(v.lo, tfm_high(v));
    const float4 b = fmax(a.lo, a.hi);
    const float2 c = fmax(b.lo, b.hi);
    return fmax(c.x, c.y);
}

#endif
