/* SPDX-License-Identifier: MIT
 * sum_squares: one or two launches of kernels/sum_squares.cl or sum_squares_group.cl: the sums of blocks in the
 * workspace, then their sum. */
#include "backends/opencl/internal.h"

enum { BLOCK = 4096 }; /* elements, as in the kernels */

static size_t elements_of(const struct tfm_tensor *x)
{
    return (size_t)tfm_tensor_elements(x);
}

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    (void)capacity;
    return tfm__cl_is_activation(d, node->inputs[0], reason, size) &&
           tfm__cl_elements_fit(node->inputs[0], reason, size);
}

static enum tfm_status plan_one(struct tfm__cl_planner *p, struct tfm__cl_launch *launch,
                                const char *wide, const char *group)
{
    if (p->device->settings.shape == TFM__CL_WIDE) {
        launch->kernel = (struct tfm__cl_kernel){"sum_squares.cl", wide, NULL};
        return tfm__cl_plan_launch(p, launch);
    }
    launch->kernel = (struct tfm__cl_kernel){"sum_squares_group.cl", group, NULL};
    return tfm__cl_plan_group(p, launch, 0, 1);
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    const size_t elements = elements_of(node->inputs[0]), blocks = (elements + BLOCK - 1) / BLOCK;
    const struct tfm__cl_operand y = tfm__cl_operand_of(p, node->outputs[0], TFM__CL_RAW);
    struct tfm__cl_launch launch = {
        .step = tfm__cl_step(node),
        .n_operands = 2,
        .operands = {tfm__cl_operand_of(p, node->inputs[0], TFM__CL_RAW),
                     blocks > 1 ? tfm__cl_operand_workspace(0) : y},
        .cost = elements,
    };

    launch.step.width = (uint32_t)elements;
    enum tfm_status status =
        plan_one(p, &launch, "tfm_run_sum_squares", "tfm_run_sum_squares_group");
    if (status != TFM_STATUS_OK || blocks <= 1)
        return status;
    tfm__cl_plan_workspace(p, blocks * sizeof(float));
    launch.step.width = (uint32_t)blocks;
    launch.operands[0] = launch.operands[1];
    launch.operands[1] = y;
    launch.cost = 0; /* one part */
    return plan_one(p, &launch, "tfm_run_sum_squares_blocks", "tfm_run_sum_squares_blocks_group");
}

const struct tfm__cl_op tfm__cl_op_sum_squares = {.supports = supports, .plan = plan, .alone = 1};
