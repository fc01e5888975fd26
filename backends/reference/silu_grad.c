/* SPDX-License-Identifier: MIT
 * silu_grad: see lib/ops/silu_grad.c. dx may be x. */
#include "backends/reference/elementwise.h"
#include "backends/reference/gates.h"

static void map(const struct tfm_attrs *attrs, double *a, const double *b, size_t n)
{
    (void)attrs;
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] * tfm__gate_silu_slope(a[i]);
}

enum tfm_status tfm__reference_silu_grad(const struct tfm__reference_call *call)
{
    return tfm__reference_each_two(call, map);
}
