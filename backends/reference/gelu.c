/* SPDX-License-Identifier: MIT
 * gelu: y = x Phi(x); see lib/ops/gelu.c. Both forms are written so that the far tail keeps its digits:
 * 1 + erf(-x) is erfc(x), and (1 + tanh(u)) / 2 is 1 / (1 + exp(-2 u)). y may be x. */
#include <math.h>

#include "backends/reference/elementwise.h"
#include "backends/reference/gates.h"

static double by_erf(double x)
{
    return x == -INFINITY ? 0.0 : 0.5 * x * erfc(-x * sqrt(0.5));
}

static double by_tanh(double x)
{
    const double root = 0.79788456080286535588; /* sqrt(2 / pi) */

    return x == -INFINITY ? 0.0 : x * tfm__gate_sigmoid(2 * root * (x + 0.044715 * x * x * x));
}

static void map(const struct tfm_attrs *attrs, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = attrs->tanh_form ? by_tanh(x[i]) : by_erf(x[i]);
}

enum tfm_status tfm__reference_gelu(const struct tfm__reference_call *call)
{
    return tfm__reference_each(call, map);
}
