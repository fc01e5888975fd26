/* SPDX-License-Identifier: MIT
 * scale_grad: see lib/ops/scale_grad.c. 1 - tanh(z)^2 is 4 s (1 - s) with s = sigmoid(2 z), which keeps its digits
 * far out. dx may be x. */
#include "backends/reference/elementwise.h"
#include "backends/reference/gates.h"

static void map(const struct tfm_attrs *attrs, double *a, const double *b, size_t n)
{
    const double cap = attrs->softcap;

    for (size_t i = 0; i < n; i++) {
        const double z = cap > 0 ? 2 * attrs->factor * a[i] / cap : 0;
        a[i] = attrs->factor * 4 * tfm__gate_sigmoid(z) * tfm__gate_sigmoid(-z) * b[i];
    }
}

enum tfm_status tfm__reference_scale_grad(const struct tfm__reference_call *call)
{
    return tfm__reference_each_two(call, map);
}
