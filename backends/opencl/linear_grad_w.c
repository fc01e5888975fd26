/* SPDX-License-Identifier: MIT
 * linear_grad_w: one launch of kernels/matrix.cl or matrix_group.cl. */
#include "backends/opencl/internal.h"

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    return tfm__cl_is_activation(d, node->inputs[0], reason, size) &&
           tfm__cl_matrix_fits(d, node->inputs[0], capacity, reason, size);
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    static const struct tfm__cl_matrix names = {"tfm_run_linear_grad_w",
                                                "tfm_run_linear_grad_w_group"};
    const struct tfm_tensor *x = node->inputs[0], *dy = node->inputs[1];
    struct tfm__cl_launch launch = {
        .step = tfm__cl_step(node),
        .n_operands = 4,
        .operands = {tfm__cl_operand_of(p, x, TFM__CL_RAW), tfm__cl_operand_of(p, dy, TFM__CL_RAW),
                     tfm__cl_operand_of(p, tfm__cl_input(node, 2), TFM__CL_RAW),
                     tfm__cl_operand_of(p, tfm__cl_input(node, 3), TFM__CL_RAW)},
    };
    const size_t rows = (size_t)tfm_tensor_rows_most(x, p->capacity);

    launch.step.vectors = tfm__cl_vectors(x);
    launch.step.width = (uint32_t)x->shape[x->rank - 1];
    launch.step.out = (uint32_t)dy->shape[dy->rank - 1];
    launch.cost = (uint64_t)launch.step.vectors * launch.step.width * launch.step.out;
    return tfm__cl_matrix_plan(p, &launch, &names, rows * launch.step.vectors);
}

const struct tfm__cl_op tfm__cl_op_linear_grad_w = {.supports = supports, .plan = plan, .alone = 1};
