/* SPDX-License-Identifier: MIT
 * layer_norm: one launch of kernels/layer_norm.cl or kernels/layer_norm_group.cl. */
#include "backends/opencl/internal.h"

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (node->inputs[i] && !tfm__cl_is_activation(d, node->inputs[i], reason, size))
            return 0;
    }
    return tfm__cl_vectors_fit(node->inputs[0], capacity, reason, size);
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    const struct tfm_tensor *x = node->inputs[0];
    const struct tfm_tensor *beta = node->n_inputs > 2 ? node->inputs[2] : NULL;
    struct tfm__cl_launch launch = {
        .kernel = {NULL, "tfm_run_layer_norm", NULL},
        .step = tfm__cl_step(node),
        .n_operands = 4,
        .operands = {tfm__cl_operand_of(p, x, TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->inputs[1], TFM__CL_RAW),
                     tfm__cl_operand_of(p, beta, TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->outputs[0], TFM__CL_RAW)},
    };

    launch.step.width = (uint32_t)x->shape[x->rank - 1];
    launch.step.vectors = tfm__cl_vectors(x);
    launch.step.eps = (float)node->attrs.eps;
    launch.cost = 3 * (uint64_t)tfm_tensor_row_elements(x);
    if (p->device->settings.shape == TFM__CL_WIDE)
        return tfm__cl_plan_launch(p, &launch);
    launch.kernel =
        (struct tfm__cl_kernel){"layer_norm_group.cl", "tfm_run_layer_norm_group", NULL};
    return tfm__cl_plan_group(p, &launch, 0, 1);
}

const struct tfm__cl_op tfm__cl_op_layer_norm = {.supports = supports, .plan = plan};
