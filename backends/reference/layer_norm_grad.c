/* SPDX-License-Identifier: MIT
 * layer_norm_grad: see lib/ops/layer_norm_grad.c. */
#include "backends/reference/norm_grad.h"

enum tfm_status tfm__reference_layer_norm_grad(const struct tfm__reference_call *call)
{
    return tfm__reference_norm_grad(call, 1);
}
