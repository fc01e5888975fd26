/* SPDX-License-Identifier: MIT
 * linear_grad_w: one product of kernels/matrix.cl or matrix_group.cl. Where it is one of bf16, the
 * gradient of the bias, which is a sum of dy as it is, takes a launch of its own. */
#include "backends/opencl/internal.h"

int tfm__cl_linear_grad_w_is_bf16(const struct tfm__cl_device *d, const struct tfm_node *node)
{
    return node->attrs.bf16_factors && tfm__cl_input(node, 2) && tfm__cl_bf16_is_on(d);
}

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    return tfm__cl_is_activation(d, node->inputs[0], reason, size) &&
           tfm__cl_matrix_fits(d, node->inputs[0], capacity,
                               tfm__cl_linear_grad_w_is_bf16(d, node)
                                   ? (size_t)node->inputs[1]->shape[node->inputs[1]->rank - 1]
                                   : 0,
                               reason, size);
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    struct tfm__cl_matrix product = {.file = "matrix.cl",
                                     .wide = "tfm_run_linear_grad_w",
                                     .group_file = "matrix_group.cl",
                                     .group = "tfm_run_linear_grad_w_group",
                                     .a = 1,
                                     .turned = 1};
    const struct tfm_tensor *x = node->inputs[0], *dy = node->inputs[1];
    struct tfm__cl_launch launch = {
        .step = tfm__cl_step(node),
        .n_operands = 4,
        .operands = {tfm__cl_operand_of(p, x, TFM__CL_RAW), tfm__cl_operand_of(p, dy, TFM__CL_RAW),
                     tfm__cl_operand_of(p, tfm__cl_input(node, 2), TFM__CL_RAW),
                     tfm__cl_operand_of(p, tfm__cl_input(node, 3), TFM__CL_RAW)},
    };
    const size_t rows = (size_t)tfm_tensor_rows_most(x, p->capacity);
    const uint32_t number = p->program->n_nodes;

    launch.step.vectors = tfm__cl_vectors(x);
    launch.step.width = (uint32_t)x->shape[x->rank - 1];
    launch.step.out = (uint32_t)dy->shape[dy->rank - 1];
    launch.cost = (uint64_t)launch.step.vectors * launch.step.width * launch.step.out;
    product.k = rows * launch.step.vectors;
    product.m = launch.step.out;
    product.bf16 = tfm__cl_linear_grad_w_is_bf16(p->device, node);
    product.both = product.rounded =
        number > 0 && tfm__cl_matrix_shares(p->device, p->segment->nodes[number - 1], node);
    if (product.bf16 && tfm__cl_input(node, 3)) {
        struct tfm__cl_launch bias = launch;
        struct tfm__cl_matrix plain = product;
        bias.operands[2] = tfm__cl_operand_of(p, NULL, TFM__CL_RAW);
        bias.cost = (uint64_t)bias.step.vectors * bias.step.out;
        plain.bf16 = plain.both = 0;
        const enum tfm_status status = tfm__cl_matrix_plan(p, &bias, &plain);
        if (status != TFM_STATUS_OK)
            return status;
        launch.operands[3] = tfm__cl_operand_of(p, NULL, TFM__CL_RAW);
    }
    return tfm__cl_matrix_plan(p, &launch, &product);
}

const struct tfm__cl_op tfm__cl_op_linear_grad_w = {.supports = supports, .plan = plan, .alone = 1};
