/* SPDX-License-Identifier: MIT
 * What rms_norm_grad and layer_norm_grad share: a launch for dx, which also notes the moments of each vector in the
 * workspace, and one over columns for the sums, if there are any. */
#include "backends/opencl/internal.h"
#include "lib/core/checked.h"

/* Bytes of the moments of all vectors; 0 = too many. */
static size_t moments_of(const struct tfm_tensor *x, const struct tfm_capacity *c)
{
    const size_t rows = (size_t)tfm_tensor_rows_most(x, c);
    size_t bytes;

    return tfm__mul_size(rows, tfm__cl_vectors(x), &bytes) ||
                   tfm__mul_size(bytes, 2 * sizeof(float), &bytes)
               ? 0
               : bytes;
}

int tfm__cl_norm_grad_supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                               const struct tfm_capacity *capacity, char *reason, size_t size)
{
    const size_t bytes = moments_of(node->inputs[0], capacity);

    if (!tfm__cl_is_activation(d, node->inputs[0], reason, size) ||
        !tfm__cl_is_activation(d, node->inputs[1], reason, size) ||
        !tfm__cl_vectors_fit(node->inputs[0], capacity, reason, size))
        return 0;
    return (bytes > 0 && bytes <= d->max_alloc) ||
           tfm__cl_refuse(reason, size,
                          "the moments of all vectors do not fit a buffer of %zu bytes",
                          d->max_alloc);
}

enum tfm_status tfm__cl_norm_grad_plan(struct tfm__cl_planner *p, const struct tfm_node *node,
                                       const struct tfm__cl_norm_grad *names)
{
    const struct tfm_tensor *x = node->inputs[0], *dy = node->inputs[2];
    const struct tfm_tensor *dgamma = tfm__cl_input(node, 3), *dbeta = tfm__cl_input(node, 4);
    struct tfm__cl_launch launch = {
        .kernel = {names->file, names->rows, NULL},
        .step = tfm__cl_step(node),
        .n_operands = 5,
        .operands = {tfm__cl_operand_of(p, x, TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->inputs[1], TFM__CL_RAW),
                     tfm__cl_operand_of(p, dy, TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->outputs[0], TFM__CL_RAW),
                     tfm__cl_operand_workspace(0)},
    };

    tfm__cl_plan_workspace(p, moments_of(x, p->capacity));
    launch.step.width = (uint32_t)x->shape[x->rank - 1];
    launch.step.vectors = tfm__cl_vectors(x);
    launch.step.eps = (float)node->attrs.eps;
    launch.cost = 6 * (uint64_t)tfm_tensor_row_elements(x);
    enum tfm_status status = tfm__cl_plan_each(p, &launch);
    if (status != TFM_STATUS_OK || (!dgamma && !dbeta))
        return status;
    launch.kernel.name = names->columns;
    launch.operands[1] = launch.operands[2];
    launch.operands[2] = launch.operands[4];
    launch.operands[3] = tfm__cl_operand_of(p, dgamma, TFM__CL_RAW);
    launch.operands[4] = tfm__cl_operand_of(p, dbeta, TFM__CL_RAW);
    return tfm__cl_plan_each(p, &launch);
}
