/* SPDX-License-Identifier: MIT
 * swiglu_grad: one launch of kernels/swiglu_grad.cl. */
#include "backends/opencl/internal.h"

enum { COST = 12 }; /* of an element */

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    return tfm__cl_elementwise_plan(
        p, node, (struct tfm__cl_kernel){"swiglu_grad.cl", "tfm_run_swiglu_grad", NULL}, COST);
}

const struct tfm__cl_op tfm__cl_op_swiglu_grad = {
    .supports = tfm__cl_elementwise_supports, .plan = plan, .alone = 1};
