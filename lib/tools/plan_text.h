/* SPDX-License-Identifier: MIT
 * Tensors of a plan as text: "x [N, 576] f32". */
#ifndef TFM__TOOLS_PLAN_TEXT_H
#define TFM__TOOLS_PLAN_TEXT_H

#include <stddef.h>

#include <tfm/plan.h>

struct tfm__shape_line {
    char text[96];
};

/* "N" or "R" for the extents that a run decides, a number for others. */
void tfm__plan_extent(const struct tfm_tensor *tensor, int32_t axis, char *text, size_t size);
/* "[N, 9, 64] f32" */
const char *tfm__plan_shape(const struct tfm_tensor *tensor, struct tfm__shape_line *line);
/* "parameter", "state", ... */
const char *tfm__plan_kind(const struct tfm_tensor *tensor);
/* Name of the layer, or "". */
const char *tfm__plan_layer(const struct tfm_node *node);

/* lib/tools/plan_json.c, plan_dot.c: print a whole plan; return an exit code. */
int tfm__plan_put_json(const struct tfm_plan *plan);
int tfm__plan_put_dot(const struct tfm_plan *plan);

#endif
