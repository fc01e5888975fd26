/* SPDX-License-Identifier: MIT
 * adamw: one launch of kernels/adamw.cl. */
#include "backends/opencl/internal.h"

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    (void)capacity;
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (node->inputs[i] && !tfm__cl_is_activation(d, node->inputs[i], reason, size))
            return 0;
    }
    return tfm__cl_elements_fit(node->inputs[0], reason, size);
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    struct tfm__cl_launch launch = {
        .kernel = {"adamw.cl", "tfm_run_adamw", NULL},
        .step = tfm__cl_step(node),
        .n_operands = 6,
    };

    for (uint32_t i = 0; i < launch.n_operands; i++)
        launch.operands[i] = tfm__cl_operand_of(p, tfm__cl_input(node, i), TFM__CL_RAW);
    launch.step.width = (uint32_t)tfm_tensor_elements(node->inputs[0]);
    launch.cost = 8 * (uint64_t)launch.step.width;
    return tfm__cl_plan_each(p, &launch);
}

const struct tfm__cl_op tfm__cl_op_adamw = {.supports = supports, .plan = plan, .alone = 1};
