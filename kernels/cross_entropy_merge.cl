/* SPDX-License-Identifier: MIT
 * cross_entropy: the chunks of classes of each row put together, from left to right; the rows are a chunk too
 *   partial [rows][chunks][4] as cross_entropy.cl and cross_entropy_group.cl leave it, targets [N] I32
 *   -> lse [N] = most + log(mass), loss [N] = (most - logit of the target) + log(mass), 0 without a target
 * Work map: the units are rows, shared out as tfm_first in common.cl shows. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif

__kernel void tfm_run_cross_entropy_merge(__global const uchar *partial,
                                          __global const uchar *targets, __global uchar *loss,
                                          __global uchar *lse,
                                          __global const struct tfm_step *steps, uint index,
                                          __global const int *rows)
{
    __global const struct tfm_step *s = steps + index;
    const uint part = get_global_id(0), parts = get_global_size(0), n = tfm_chunk_rows(s, rows);
    const uint chunks = (s->out + s->columns - 1) / s->columns;
    const uint end = (uint)tfm_end(n, part, parts);

    for (uint row = (uint)tfm_first(n, part, parts); row < end; row += (uint)tfm_stride(parts)) {
        __global const float *from =
            (__global const float *)(partial + s->at[0]) + (ulong)row * chunks * 4;
        const int target = ((__global const int *)(targets + s->at[1]))[s->first + row];
        float most = -FLT_MAX, mass = 0.0f, picked = 0.0f;
        for (uint c = 0; c < chunks; c++)
            most = fmax(most, from[4 * c]);
        for (uint c = 0; c < chunks; c++) {
            mass += from[4 * c + 1] * exp(from[4 * c] - most);
            picked += from[4 * c + 2];
        }
        const float rest = log(mass);
        ((__global float *)(lse + s->at[3]))[s->first + row] = most + rest;
        ((__global float *)(loss + s->at[2]))[s->first + row] =
            target < 0 ? 0.0f : (most - picked) + rest;
    }
}
