/* SPDX-License-Identifier: MIT
 * rms_norm_grad: two launches of kernels/rms_norm_grad.cl. */
#include "backends/opencl/internal.h"

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    static const struct tfm__cl_norm_grad names = {"rms_norm_grad.cl", "tfm_run_rms_norm_grad",
                                                   "tfm_run_rms_norm_grad_sums"};

    return tfm__cl_norm_grad_plan(p, node, &names);
}

const struct tfm__cl_op tfm__cl_op_rms_norm_grad = {
    .supports = tfm__cl_norm_grad_supports, .plan = plan, .alone = 1};
