/* SPDX-License-Identifier: MIT
 * What the shape rules of rms_norm_grad and layer_norm_grad share. */
#ifndef TFM__OPS_NORM_GRAD_H
#define TFM__OPS_NORM_GRAD_H

#include "lib/ops/refuse.h"

/* roles[]: x, gamma, dy, then the sums that the op has. */
enum tfm_status tfm__infer_norm_grad(struct tfm_node *node, const char *const *roles,
                                     struct tfm_tensor *outputs, struct tfm_error *err);

#endif
