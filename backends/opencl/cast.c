/* SPDX-License-Identifier: MIT
 * cast: one launch of kernels/cast.cl. */
#include "backends/opencl/internal.h"

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    (void)capacity;
    return tfm__cl_is_activation(d, node->inputs[0], reason, size) &&
           tfm__cl_is_activation(d, node->outputs[0], reason, size);
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    struct tfm__cl_launch launch = {
        .kernel = "tfm_run_cast",
        .step = tfm__cl_step(node),
        .n_operands = 2,
        .operands = {tfm__cl_operand_of(p, node->inputs[0], TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->outputs[0], TFM__CL_RAW)},
    };

    launch.step.width = (uint32_t)tfm_tensor_row_elements(node->outputs[0]);
    launch.cost = launch.step.width;
    return tfm__cl_plan_launch(p, &launch);
}

const struct tfm__cl_op tfm__cl_op_cast = {.supports = supports, .plan = plan};
