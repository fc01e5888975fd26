/* SPDX-License-Identifier: MIT
 * scale: y = factor * x; see lib/ops/scale.c. y may be x. */
#include "backends/reference/elementwise.h"

static void map(const struct tfm_attrs *attrs, double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= attrs->factor;
}

enum tfm_status tfm__reference_scale(const struct tfm__reference_call *call)
{
    return tfm__reference_each(call, map);
}
