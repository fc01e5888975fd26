/* SPDX-License-Identifier: MIT
 * embedding: one launch of kernels/embedding.cl, from the packed form of the table; while it is trained, of
 * kernels/embedding_grad.cl. */
#include "backends/opencl/internal.h"

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    const struct tfm_tensor *table = node->inputs[0];
    const struct tfm_dtype_info *info = d->host->dtype_info(table->dtype);

    if (tfm__cl_is_trainable(d, table))
        return tfm__cl_is_activation(d, table, reason, size) &&
               tfm__cl_vectors_fit(node->outputs[0], capacity, reason, size);
    if (tfm__cl_panel_bytes(table->dtype, (size_t)table->shape[1]) == 0)
        return tfm__cl_refuse(reason, size, "no packed form for a table of %s with rows of %lld",
                              info ? info->name : "?", (long long)table->shape[1]);
    return tfm__cl_vectors_fit(node->outputs[0], capacity, reason, size);
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    struct tfm__cl_launch launch = {
        .kernel = {NULL, "tfm_run_embedding", NULL},
        .step = tfm__cl_step(node),
        .n_operands = 3,
        .operands = {tfm__cl_operand_of(p, node->inputs[0], TFM__CL_PANELS),
                     tfm__cl_operand_of(p, node->inputs[1], TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->outputs[0], TFM__CL_RAW)},
    };

    if (tfm__cl_is_trainable(p->device, node->inputs[0]))
        launch.kernel =
            (struct tfm__cl_kernel){"embedding_grad.cl", "tfm_run_embedding_rows", NULL};
    launch.step.width = (uint32_t)node->inputs[0]->shape[1];
    launch.step.out = (uint32_t)node->inputs[0]->shape[0];
    launch.step.vectors = tfm__cl_vectors(node->outputs[0]);
    launch.cost = 4 * (uint64_t)tfm_tensor_row_elements(node->outputs[0]);
    return tfm__cl_plan_each(p, &launch);
}

const struct tfm__cl_op tfm__cl_op_embedding = {
    .supports = supports, .plan = plan, .panels = 1u, .trains = 1u};
