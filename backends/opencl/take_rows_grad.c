/* SPDX-License-Identifier: MIT
 * take_rows_grad: one launch of kernels/take_rows_grad.cl. */
#include "backends/opencl/internal.h"

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    (void)capacity;
    return tfm__cl_is_activation(d, node->inputs[0], reason, size);
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    struct tfm__cl_launch launch = {
        .kernel = {"take_rows_grad.cl", "tfm_run_take_rows_grad", NULL},
        .step = tfm__cl_step(node),
        .n_operands = 2,
        .operands = {tfm__cl_operand_of(p, node->inputs[0], TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->outputs[0], TFM__CL_RAW)},
    };

    launch.step.width = (uint32_t)tfm_tensor_row_elements(node->inputs[0]);
    launch.cost = 2 * (uint64_t)launch.step.width;
    return tfm__cl_plan_each(p, &launch);
}

const struct tfm__cl_op tfm__cl_op_take_rows_grad = {
    .supports = supports, .plan = plan, .alone = 1};
