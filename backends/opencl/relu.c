/* SPDX-License-Identifier: MIT
 * relu: one launch of kernels/relu.cl. */
#include "backends/opencl/internal.h"

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    return tfm__cl_elementwise_plan(p, node, (struct tfm__cl_kernel){NULL, "tfm_run_relu", NULL},
                                    1);
}

const struct tfm__cl_op tfm__cl_op_relu = {.supports = tfm__cl_elementwise_supports, .plan = plan};
