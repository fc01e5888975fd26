/* SPDX-License-Identifier: MIT
 * What the kernels of the group shape share: sums and maxima over the work-items of a group, through
 * local memory. The size of a group is the host's choice, any power of two from 4 on; nothing but
 * barriers is assumed.
 *
 *   value of work-item   0  1  2  3  4  5  6  7
 *   4 items fold         0+4   1+5   2+6   3+7
 *   2, then 1            ...   so that the order depends on the size of the group alone
 *
 * Every work-item of a group must come here equally often. Local memory is always an argument, `local`
 * floats of the step: PoCL 3.1 lets two groups that run at a time share an array that a kernel declares. */
#ifndef TFM_COMMON_CL
#include "common.cl"
#endif
#define TFM_GROUP_CL

/* Sum of the values of all work-items, which all get; cells [size of the group]. */
static float tfm_group_sum(float value, __local float *cells)
{
    const uint me = (uint)get_local_id(0);

    cells[me] = value;
    for (uint n = (uint)get_local_size(0) / 2; n > 0; n /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me < n)
            cells[me] += cells[me + n];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float sum = cells[0];
    barrier(CLK_LOCAL_MEM_FENCE); /* all have read it before the cells are used again */
    return sum;
}

static float tfm_group_max(float value, __local float *cells)
{
    const uint me = (uint)get_local_id(0);

    cells[me] = value;
    for (uint n = (uint)get_local_size(0) / 2; n > 0; n /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me < n)
            cells[me] = fmax(cells[me], cells[me + n]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float most = cells[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return most;
}
