/* SPDX-License-Identifier: MIT
 * scale: y = factor * x, through a soft cap if there is one; see lib/ops/scale.c. y may be x. */
#include <math.h>

#include "backends/reference/elementwise.h"

static void map(const struct tfm_attrs *attrs, double *x, size_t n)
{
    const double cap = attrs->softcap;

    for (size_t i = 0; i < n; i++) {
        x[i] *= attrs->factor;
        if (cap > 0)
            x[i] = cap * tanh(x[i] / cap);
    }
}

enum tfm_status tfm__reference_scale(const struct tfm__reference_call *call)
{
    return tfm__reference_each(call, map);
}
