/* SPDX-License-Identifier: MIT
 * gelu_grad: see lib/ops/gelu_grad.c. Far out the density is 0, and x may be infinite. dx may be x. */
#include <math.h>

#include "backends/reference/elementwise.h"
#include "backends/reference/gates.h"

static double by_erf(double x)
{
    const double density = 0.39894228040143267794 * exp(-0.5 * x * x); /* 1 / sqrt(2 pi) */
    return 0.5 * erfc(-x * sqrt(0.5)) + (density == 0 ? 0 : x * density);
}

static double by_tanh(double x)
{
    const double root = 0.79788456080286535588; /* sqrt(2 / pi) */
    const double u = 2 * root * (x + 0.044715 * x * x * x);
    const double slope = tfm__gate_sigmoid(u) * tfm__gate_sigmoid(-u);
    return tfm__gate_sigmoid(u) + (slope == 0 ? 0 : x * slope * 2 * root * (1 + 0.134145 * x * x));
}

static void map(const struct tfm_attrs *attrs, double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] * (attrs->tanh_form ? by_tanh(a[i]) : by_erf(a[i]));
}

enum tfm_status tfm__reference_gelu_grad(const struct tfm__reference_call *call)
{
    return tfm__reference_each_two(call, map);
}
