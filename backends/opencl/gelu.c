/* SPDX-License-Identifier: MIT
 * gelu: one launch of kernels/gelu.cl. */
#include "backends/opencl/internal.h"

enum { COST = 24 }; /* of an element: erfc, or exp and a division, in two floats */

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    return tfm__cl_elementwise_plan(p, node, (struct tfm__cl_kernel){NULL, "tfm_run_gelu", NULL},
                                    COST);
}

const struct tfm__cl_op tfm__cl_op_gelu = {.supports = tfm__cl_elementwise_supports, .plan = plan};
