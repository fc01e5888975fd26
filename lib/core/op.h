/* SPDX-License-Identifier: MIT
 * The rule of an op by its id. */
#ifndef TFM__CORE_OP_H
#define TFM__CORE_OP_H

#include "lib/core/rule.h"

/* NULL for a value that is no op. */
const struct tfm__rule *tfm__op_rule(enum tfm_op op);

#endif
