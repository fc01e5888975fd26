/* SPDX-License-Identifier: MIT
 * silu: y = x / (1 + exp(-x)); see lib/ops/silu.c. y may be x. */
#include "backends/reference/elementwise.h"
#include "backends/reference/gates.h"

static void map(const struct tfm_attrs *attrs, double *x, size_t n)
{
    (void)attrs;
    for (size_t i = 0; i < n; i++)
        x[i] = tfm__gate_silu(x[i]);
}

enum tfm_status tfm__reference_silu(const struct tfm__reference_call *call)
{
    return tfm__reference_each(call, map);
}
