/* SPDX-License-Identifier: MIT
 * add: y = a + b; see lib/ops/add.c. y may be a, and b may be a. */
#include "backends/reference/elementwise.h"

static void map(const struct tfm_attrs *attrs, double *a, const double *b, size_t n)
{
    (void)attrs;
    for (size_t i = 0; i < n; i++)
        a[i] += b[i];
}

enum tfm_status tfm__reference_add(const struct tfm__reference_call *call)
{
    return tfm__reference_each_two(call, map);
}
