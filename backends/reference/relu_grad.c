/* SPDX-License-Identifier: MIT
 * relu_grad: see lib/ops/relu_grad.c. dx may be x. */
#include "backends/reference/elementwise.h"

static void map(const struct tfm_attrs *attrs, double *a, const double *b, size_t n)
{
    (void)attrs;
    for (size_t i = 0; i < n; i++)
        a[i] = a[i] <= 0 ? 0 : b[i];
}

enum tfm_status tfm__reference_relu_grad(const struct tfm__reference_call *call)
{
    return tfm__reference_each_two(call, map);
}
