/* SPDX-License-Identifier: MIT
 * What the shape rules of attention and its gradient share. */
#ifndef TFM__OPS_ATTENTION_H
#define TFM__OPS_ATTENTION_H

#include "lib/ops/refuse.h"

/* q, k, v (inputs 0 to 2), rel_bias and rel_bucket (5, 6), and the attributes. */
enum tfm_status tfm__attention_check(const struct tfm_node *node, const char *const *names,
                                     struct tfm_error *err);

#endif
