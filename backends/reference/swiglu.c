/* SPDX-License-Identifier: MIT
 * swiglu: y = silu(gate) * up; see lib/ops/swiglu.c. y may be gate. */
#include "backends/reference/elementwise.h"
#include "backends/reference/gates.h"

static void map(const struct tfm_attrs *attrs, double *a, const double *b, size_t n)
{
    (void)attrs;
    for (size_t i = 0; i < n; i++)
        a[i] = tfm__gate_silu(a[i]) * b[i];
}

enum tfm_status tfm__reference_swiglu(const struct tfm__reference_call *call)
{
    return tfm__reference_each_two(call, map);
}
