/* SPDX-License-Identifier: MIT
 * rope: rotary position embedding   (Su et al., arXiv:2104.09864)
 *   x, y [N, H, T, d] or [N, T, H, d] F32, F16 or BF16, T may be 1; pos [N, T] or, shared, [T] I32
 *   vectors: heads side by side before the token changes, 1 in [N, H, T, d], H in [N, T, H, d]
 *   table [P, r/2, 2] F32: (c, s) = table[pos[n][t]][i]
 *   pair i of every head, (a, b), becomes (a c - b s, a s + b c); inverse: s is negated
 *     adjacent  a = x[2i], b = x[2i + 1]    [a b a b a b]
 *     halves    a = x[i],  b = x[i + r/2]   [a a a b b b]
 *   elements r..d-1 are copied
 *
 * Work map, wide: a part takes a run of the N H T heads; 8 or 16 pairs at a time. Group: a unit is one pair, or
 * one element behind them. y may be x: pairs are read whole before they are written. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif
#define TFM_ROPE_CL

/* Of the angle. Phases only turn forwards. */
#ifdef TFM_PERSISTENT
#define TFM_ROPE_SIGN(s) 1.0f
#else
#define TFM_ROPE_SIGN(s) ((s)->inverse ? -1.0f : 1.0f)
#endif

/* Pairs [i, i + n) of one head, one by one. at = element of the head's beginning. */
static void tfm_rope_pairs(__global const uchar *x, __global uchar *y, ulong at,
                           __global const float *turn, uint i, uint n,
                           __global const struct tfm_step *s)
{
    const uint in = s->type[0], out = s->type[3], half_r = s->rotated / 2;
    const float sign = TFM_ROPE_SIGN(s);

    for (uint j = i; j < i + n; j++) {
        const ulong first = at + (s->halves ? j : 2 * j);
        const ulong second = at + (s->halves ? j + half_r : 2 * j + 1);
        const float a = tfm_load(x, first, in), b = tfm_load(x, second, in);
        const float c = turn[2 * j], d = turn[2 * j + 1] * sign;
        tfm_store(a * c - b * d, y, first, out);
        tfm_store(a * d + b * c, y, second, out);
    }
}

static void tfm_rope_head(__global const uchar *x, __global uchar *y, ulong at,
                          __global const float *turn, __global const struct tfm_step *s)
{
    const uint in = s->type[0], out = s->type[3], pairs = s->rotated / 2;
    const float sign = TFM_ROPE_SIGN(s);
    uint i = 0;

    /* the vector form of the loop above; halves need 16 whole pairs */
    if (s->halves) {
        for (; i + 16 <= pairs; i += 16) {
            const float16 low = vload16(0, turn + 2 * i), high = vload16(1, turn + 2 * i);
            const float16 c = tfm_join(low.even, high.even);
            const float16 d = tfm_join(tfm_odd(low), tfm_odd(high)) * sign;
            const float16 a = tfm_load16(x, at + i, in), b = tfm_load16(x, at + pairs + i, in);
            tfm_store16(a * c - b * d, y, at + i, out);
            tfm_store16(a * d + b * c, y, at + pairs + i, out);
        }
    } else {
        for (; i + 8 <= pairs; i += 8) {
            const float16 v = tfm_load16(x, at + 2 * i, in);
            const float16 t = vload16(0, turn + 2 * i);
            const float8 a = v.even, b = tfm_odd(v), c = t.even, d = tfm_odd(t) * sign;
            tfm_store16(tfm_zip(a * c - b * d, a * d + b * c), y, at + 2 * i, out);
        }
    }
    tfm_rope_pairs(x, y, at, turn, i, pairs - i, s);
    for (uint j = s->rotated; j < s->head_dim; j++)
        tfm_store(tfm_load(x, at + j, in), y, at + j, out);
}

static void tfm_rope(__global const uchar *x, __global const int *pos, __global const float *table,
                     __global uchar *y, __global const struct tfm_step *s, __global const int *rows,
                     uint part, uint parts)
{
    const uint tokens = s->tokens, pairs = s->rotated / 2;
    const uint units = TFM_GROUPED ? s->head_dim - pairs : 1; /* of a head */
    const ulong n = (ulong)tfm_rows(s, rows) * s->heads * tokens * units;
    const ulong end = tfm_end(n, part, parts);

    for (ulong unit = tfm_first(n, part, parts); unit < end; unit += tfm_stride(parts)) {
        const ulong h = unit / units;
        const ulong row = h / (s->heads * tokens);
        const ulong token = tokens == 1 ? 0 : h / s->vectors % tokens;
        const int p = pos[s->shared ? token : row * tokens + token];
        const ulong at = h * s->head_dim;
        __global const float *turn = table + (ulong)p * s->rotated;
        if (TFM_GROUPED) {
            const uint i = (uint)(unit % units);
            if (i < pairs)
                tfm_rope_pairs(x, y, at, turn, i, 1, s);
            else
                tfm_store(tfm_load(x, at + pairs + i, s->type[0]), y, at + pairs + i, s->type[3]);
        } else {
            tfm_rope_head(x, y, at, turn, s);
        }
    }
}

#ifndef TFM_PERSISTENT /* this function alone is a kernel, too */
__kernel void tfm_run_rope(__global const uchar *x, __global const uchar *pos,
                           __global const uchar *table, __global uchar *y,
                           __global const struct tfm_step *steps, uint index,
                           __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    tfm_rope(x + s->at[0], (__global const int *)(pos + s->at[1]),
             (__global const float *)(table + s->at[2]), y + s->at[3], s, rows, get_global_id(0),
             get_global_size(0));
}
#endif
