/* SPDX-License-Identifier: MIT
 * Facts about ops, expanded from ops.def, and the table of their rules. */
#include <stddef.h>

#include <tfm/op.h>

#include "lib/core/op.h"

static const struct tfm_op_info infos[TFM_OP_LIMIT] = {
#define TFM_OP(id, NAME, stem, in_min, in_max, n_out, row_kind, in_place_input, diff, bound, age) \
    [TFM_OP_##NAME] = {.name = #stem,                                                             \
                       .inputs_min = (in_min),                                                    \
                       .inputs_max = (in_max),                                                    \
                       .outputs = (n_out),                                                        \
                       .rows = TFM_OP_ROWS_##row_kind,                                            \
                       .in_place = (in_place_input),                                              \
                       .differentiable = (diff),                                                  \
                       .nmse = (bound),                                                           \
                       .minor = (age)},
#include <tfm/ops.def>
#undef TFM_OP
};

static const struct tfm__rule *const rules[TFM_OP_LIMIT] = {
#define TFM_OP(id, NAME, stem, in_min, in_max, outputs, rows, in_place, diff, nmse, minor) \
    [TFM_OP_##NAME] = &tfm__rule_##stem,
#include <tfm/ops.def>
#undef TFM_OP
};

const struct tfm_op_info *tfm_op_info(enum tfm_op op)
{
    if ((unsigned)op >= TFM_OP_LIMIT || !infos[op].name)
        return NULL;
    return &infos[op];
}

const char *tfm_op_name(enum tfm_op op)
{
    const struct tfm_op_info *info = tfm_op_info(op);
    return info ? info->name : "?";
}

const struct tfm__rule *tfm__op_rule(enum tfm_op op)
{
    return tfm_op_info(op) ? rules[op] : NULL;
}
