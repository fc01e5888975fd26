/* SPDX-License-Identifier: MIT
 * linear with a trainable weight, which lies row-major in memory of the exec: one launch for any number of
 * rows, or two where x is rounded to bf16. */
#include "backends/opencl/internal.h"

int tfm__cl_linear_rows_supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                                 const struct tfm_capacity *capacity, char *reason, size_t size)
{
    return tfm__cl_is_activation(d, node->inputs[1], reason, size) &&
           tfm__cl_matrix_fits(
               d, node->inputs[0], capacity,
               tfm__cl_matrix_is_bf16(d, node->inputs[1]) ? (size_t)node->inputs[1]->shape[1] : 0,
               reason, size);
}

enum tfm_status tfm__cl_linear_rows_plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    struct tfm__cl_matrix product = {.file = "matrix.cl",
                                     .wide = "tfm_run_linear_rows",
                                     .group_file = "matrix_group.cl",
                                     .group = "tfm_run_linear_rows_group"};
    const struct tfm_tensor *x = node->inputs[0], *weight = node->inputs[1];
    struct tfm__cl_node *made = &p->program->nodes[p->program->n_nodes];
    struct tfm__cl_launch launch = {
        .step = tfm__cl_step(node),
        .n_operands = 4,
        .operands = {tfm__cl_operand_of(p, x, TFM__CL_RAW),
                     tfm__cl_operand_of(p, weight, TFM__CL_RAW),
                     tfm__cl_operand_of(p, tfm__cl_input(node, 2), TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->outputs[0], TFM__CL_RAW)},
    };

    launch.step.vectors = tfm__cl_vectors(x);
    launch.step.width = (uint32_t)weight->shape[1];
    launch.step.out = (uint32_t)weight->shape[0];
    launch.cost = (uint64_t)launch.step.vectors * launch.step.width * launch.step.out;
    product.k = launch.step.width;
    product.m = (size_t)tfm_tensor_rows_most(x, p->capacity) * launch.step.vectors;
    product.bf16 = tfm__cl_matrix_is_bf16(p->device, weight);
    /* the linear before has left the same x */
    product.rounded =
        product.bf16 && made->turned &&
        tfm__cl_matrix_is_bf16(p->device, p->segment->nodes[p->program->n_nodes - 1]->inputs[1]);
    return tfm__cl_matrix_plan(p, &launch, &product);
}
