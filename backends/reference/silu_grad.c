/* SPDX-License-Identifier: MIT
 * silu_grad: see lib/ops/silu_grad.c. dx may be x. */
#include <math.h>

#include "backends/reference/elementwise.h"
#include "backends/reference/gates.h"

/* s + silu(x) (1 - s), and 1 - s is the sigmoid of -x; inf times 0 has the limit 0. */
static double slope(double x)
{
    return x == INFINITY ? 1.0 : tfm__gate_sigmoid(x) + tfm__gate_silu(x) * tfm__gate_sigmoid(-x);
}

static void map(const struct tfm_attrs *attrs, double *a, const double *b, size_t n)
{
    (void)attrs;
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] * slope(a[i]);
}

enum tfm_status tfm__reference_silu_grad(const struct tfm__reference_call *call)
{
    return tfm__reference_each_two(call, map);
}
