/* SPDX-License-Identifier: MIT
 * embedding with a table that is trained, and its gradient. Here the table lies row-major.
 *   embedding       y[n] = table[ids[n]]
 *   embedding_grad  dtable[ids[n]] += dy[n]
 *   table [V, width] F32, F16 or BF16, dtable [V, width], y, dy [N, vectors, width] F32, ids [N, vectors] I32
 *   in [0, V)
 *
 * Work map: embedding: a part takes a run of the ids; group: a unit is one value. embedding_grad: a part takes a
 * run of the columns, 16 at a time, in the group shape every parts-th, and goes over all ids, so that repeated
 * ids add up in their order. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif

__kernel void tfm_run_embedding_rows(__global const uchar *table, __global const uchar *ids,
                                     __global uchar *y, __global const struct tfm_step *steps,
                                     uint index, __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint part = get_global_id(0), parts = get_global_size(0);
    const uint n = tfm_vectors(s, rows), end = (uint)tfm_share(n, part + 1, parts);
    __global const int *id = (__global const int *)(ids + s->at[1]);
    __global float *to = (__global float *)(y + s->at[2]);
    const uint width = s->width, type = s->type[0];

    for (ulong i = part; TFM_GROUPED && i < (ulong)n * width; i += parts)
        to[i] = tfm_load(table + s->at[0], (ulong)id[i / width] * width + i % width, type);
    for (uint v = (uint)tfm_share(n, part, parts); !TFM_GROUPED && v < end; v++) {
        const ulong from = (ulong)id[v] * width;
        uint i = 0;
        for (; i + 16 <= width; i += 16)
            tfm_put16(tfm_load16(table + s->at[0], from + i, type), 0, to + (ulong)v * width + i);
        for (; i < width; i++)
            to[(ulong)v * width + i] = tfm_load(table + s->at[0], from + i, type);
    }
}

__kernel void tfm_run_embedding_grad(__global const uchar *ids, __global const uchar *dy,
                                     __global uchar *dtable, __global const struct tfm_step *steps,
                                     uint index, __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint part = get_global_id(0), parts = get_global_size(0), width = s->width;
    const uint n = tfm_vectors(s, rows), units = (width + 15) / 16;
    const uint begin = 16 * (uint)tfm_share(units, part, parts);
    const uint end = min(16 * (uint)tfm_share(units, part + 1, parts), width);
    __global const int *id = (__global const int *)(ids + s->at[0]);
    __global const float *from = (__global const float *)(dy + s->at[1]);
    __global float *to = (__global float *)(dtable + s->at[2]);

    for (uint v = 0; v < n; v++) {
        __global const float *x = from + (ulong)v * width;
        __global float *sum = to + (ulong)id[v] * width;
        uint i = begin;
        for (uint j = part; TFM_GROUPED && j < width; j += parts)
            sum[j] += x[j];
        if (TFM_GROUPED)
            continue;
        for (; i + 16 <= end; i += 16)
            tfm_put16(vload16(0, sum + i) + vload16(0, x + i), 0, sum + i);
        for (; i < end; i++)
            sum[i] += x[i];
    }
}
