/* SPDX-License-Identifier: MIT
 * The shape rule of ops that compute element by element. */
#ifndef TFM__OPS_ELEMENTWISE_H
#define TFM__OPS_ELEMENTWISE_H

#include "lib/ops/refuse.h"

/* Inputs [N, ...] of one float dtype and one shape -> like the first. roles[i] names input i. */
enum tfm_status tfm__infer_elementwise(const struct tfm_node *node, const char *const *roles,
                                       struct tfm_tensor *outputs, struct tfm_error *err);

#endif
