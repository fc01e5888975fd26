/* SPDX-License-Identifier: MIT
 * silu_grad: one launch of kernels/silu_grad.cl. */
#include "backends/opencl/internal.h"

enum { COST = 10 }; /* of an element */

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    return tfm__cl_elementwise_plan(
        p, node, (struct tfm__cl_kernel){"silu_grad.cl", "tfm_run_silu_grad", NULL}, COST);
}

const struct tfm__cl_op tfm__cl_op_silu_grad = {
    .supports = tfm__cl_elementwise_supports, .plan = plan, .alone = 1};
