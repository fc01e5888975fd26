/* SPDX-License-Identifier: MIT
 * glu: one launch of kernels/glu.cl. */
#include "backends/opencl/internal.h"

enum { COST = 8 }; /* of an element: exp and a division */

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    return tfm__cl_elementwise_plan(p, node, (struct tfm__cl_kernel){NULL, "tfm_run_glu", NULL},
                                    COST);
}

const struct tfm__cl_op tfm__cl_op_glu = {.supports = tfm__cl_elementwise_supports, .plan = plan};
