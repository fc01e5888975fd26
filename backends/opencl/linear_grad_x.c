/* SPDX-License-Identifier: MIT
 * linear_grad_x: one product of kernels/matrix.cl or matrix_group.cl. */
#include "backends/opencl/internal.h"

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    return tfm__cl_is_activation(d, node->inputs[0], reason, size) &&
           tfm__cl_matrix_fits(
               d, node->inputs[1], capacity,
               tfm__cl_matrix_is_bf16(d, node->inputs[0]) ? (size_t)node->inputs[0]->shape[0] : 0,
               reason, size);
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    struct tfm__cl_matrix product = {.file = "matrix.cl",
                                     .wide = "tfm_run_linear_grad_x",
                                     .group_file = "matrix_group.cl",
                                     .group = "tfm_run_linear_grad_x_group",
                                     .a = 1};
    const struct tfm_tensor *weight = node->inputs[0], *dy = node->inputs[1];
    const uint32_t next = p->program->n_nodes + 1;
    struct tfm__cl_launch launch = {
        .step = tfm__cl_step(node),
        .n_operands = 3,
        .operands = {tfm__cl_operand_of(p, weight, TFM__CL_RAW),
                     tfm__cl_operand_of(p, dy, TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->outputs[0], TFM__CL_RAW)},
    };

    launch.step.vectors = tfm__cl_vectors(dy);
    launch.step.width = (uint32_t)weight->shape[1];
    launch.step.out = (uint32_t)weight->shape[0];
    launch.cost = (uint64_t)launch.step.vectors * launch.step.width * launch.step.out;
    product.k = launch.step.out;
    product.m = (size_t)tfm_tensor_rows_most(dy, p->capacity) * launch.step.vectors;
    product.bf16 = tfm__cl_matrix_is_bf16(p->device, weight);
    product.both = next < p->segment->n_nodes &&
                   tfm__cl_matrix_shares(p->device, node, p->segment->nodes[next]);
    return tfm__cl_matrix_plan(p, &launch, &product);
}

const struct tfm__cl_op tfm__cl_op_linear_grad_x = {.supports = supports, .plan = plan, .alone = 1};
