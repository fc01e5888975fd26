/* SPDX-License-Identifier: MIT
 * scale: one launch of kernels/scale.cl. */
#include "backends/opencl/internal.h"

enum { CAP_COST = 16 }; /* of an element: exp and two divisions */

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    return tfm__cl_elementwise_plan(p, node, (struct tfm__cl_kernel){NULL, "tfm_run_scale", NULL},
                                    node->attrs.softcap > 0 ? CAP_COST : 1);
}

const struct tfm__cl_op tfm__cl_op_scale = {.supports = tfm__cl_elementwise_supports, .plan = plan};
