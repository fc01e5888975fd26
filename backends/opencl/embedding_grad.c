/* SPDX-License-Identifier: MIT
 * embedding_grad: one launch of kernels/embedding_grad.cl. */
#include "backends/opencl/internal.h"

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    (void)d;
    return tfm__cl_vectors_fit(node->inputs[1], capacity, reason, size);
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    struct tfm__cl_launch launch = {
        .kernel = {"embedding_grad.cl", "tfm_run_embedding_grad", NULL},
        .step = tfm__cl_step(node),
        .n_operands = 3,
        .operands = {tfm__cl_operand_of(p, node->inputs[0], TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->inputs[1], TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->inputs[2], TFM__CL_RAW)},
    };

    launch.step.width = (uint32_t)node->inputs[2]->shape[1];
    launch.step.out = (uint32_t)node->inputs[2]->shape[0];
    launch.step.vectors = tfm__cl_vectors(node->inputs[1]);
    launch.cost = 4 * (uint64_t)tfm_tensor_row_elements(node->inputs[1]);
    return tfm__cl_plan_each(p, &launch);
}

const struct tfm__cl_op tfm__cl_op_embedding_grad = {
    .supports = supports, .plan = plan, .alone = 1};
