/* SPDX-License-Identifier: MIT
 * What the shape rules of cross_entropy and its gradient share: x, weight and targets. */
#ifndef TFM__OPS_CROSS_ENTROPY_H
#define TFM__OPS_CROSS_ENTROPY_H

#include "lib/ops/refuse.h"

/* Inputs 0 to 2 and the soft cap; sets the limit of the targets. */
enum tfm_status tfm__cross_entropy_check(const struct tfm_node *node, const char *const *roles,
                                         struct tfm_error *err);

#endif
