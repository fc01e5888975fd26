/* SPDX-License-Identifier: MIT
 * relu: y = max(x, 0); see lib/ops/relu.c. NaN is not below 0 and stays. y may be x. */
#include "backends/reference/elementwise.h"

static void map(const struct tfm_attrs *attrs, double *x, size_t n)
{
    (void)attrs;
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] < 0 ? 0 : x[i];
}

enum tfm_status tfm__reference_relu(const struct tfm__reference_call *call)
{
    return tfm__reference_each(call, map);
}
