/* SPDX-License-Identifier: MIT
 * The gradients of both norms: rms_norm is layer_norm without the mean. */
#ifndef TFM__REFERENCE_NORM_GRAD_H
#define TFM__REFERENCE_NORM_GRAD_H

#include "backends/reference/reference.h"

/* Inputs x, gamma, dy, dgamma or NULL, dbeta or NULL; centered: 1 = layer_norm. */
enum tfm_status tfm__reference_norm_grad(const struct tfm__reference_call *call, int centered);

#endif
