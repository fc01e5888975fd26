/* SPDX-License-Identifier: MIT
 * rms_norm_grad: see lib/ops/rms_norm_grad.c. */
#include "backends/reference/norm_grad.h"

enum tfm_status tfm__reference_rms_norm_grad(const struct tfm__reference_call *call)
{
    return tfm__reference_norm_grad(call, 0);
}
