/* SPDX-License-Identifier: MIT
 * What the ops share that compute element by element: inputs and outputs of one shape, one launch. */
#include "backends/opencl/internal.h"

int tfm__cl_elementwise_supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                                 const struct tfm_capacity *capacity, char *reason, size_t size)
{
    (void)capacity;
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (!tfm__cl_is_activation(d, node->inputs[i], reason, size))
            return 0;
    }
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        if (!tfm__cl_is_activation(d, node->outputs[i], reason, size))
            return 0;
    }
    return 1;
}

enum tfm_status tfm__cl_elementwise_plan(struct tfm__cl_planner *p, const struct tfm_node *node,
                                         struct tfm__cl_kernel kernel, uint32_t cost)
{
    struct tfm__cl_launch launch = {.kernel = kernel, .step = tfm__cl_step(node)};

    for (uint32_t i = 0; i < node->n_inputs; i++)
        launch.operands[launch.n_operands++] = tfm__cl_operand_of(p, node->inputs[i], TFM__CL_RAW);
    for (uint32_t i = 0; i < node->n_outputs; i++)
        launch.operands[launch.n_operands++] = tfm__cl_operand_of(p, node->outputs[i], TFM__CL_RAW);
    launch.step.width = (uint32_t)tfm_tensor_row_elements(node->outputs[0]);
    launch.step.scale = (float)node->attrs.factor;
    launch.step.softcap = (float)node->attrs.softcap;
    launch.step.tanh_form = (uint32_t)node->attrs.tanh_form;
    launch.cost = (uint64_t)launch.step.width * cost;
    return tfm__cl_plan_each(p, &launch);
}
