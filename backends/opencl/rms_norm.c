/* SPDX-License-Identifier: MIT
 * rms_norm: one launch of kernels/rms_norm.cl or kernels/rms_norm_group.cl. */
#include "backends/opencl/internal.h"

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    return tfm__cl_is_activation(d, node->inputs[0], reason, size) &&
           tfm__cl_is_activation(d, node->inputs[1], reason, size) &&
           tfm__cl_vectors_fit(node->inputs[0], capacity, reason, size);
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    const struct tfm_tensor *x = node->inputs[0];
    struct tfm__cl_launch launch = {
        .kernel = {NULL, "tfm_run_rms_norm", NULL},
        .step = tfm__cl_step(node),
        .n_operands = 3,
        .operands = {tfm__cl_operand_of(p, x, TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->inputs[1], TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->outputs[0], TFM__CL_RAW)},
    };

    launch.step.width = (uint32_t)x->shape[x->rank - 1];
    launch.step.vectors = tfm__cl_vectors(x);
    launch.step.eps = (float)node->attrs.eps;
    launch.cost = 2 * (uint64_t)tfm_tensor_row_elements(x);
    if (p->device->settings.shape == TFM__CL_WIDE)
        return tfm__cl_plan_launch(p, &launch);
    launch.kernel = (struct tfm__cl_kernel){"rms_norm_group.cl", "tfm_run_rms_norm_group", NULL};
    return tfm__cl_plan_group(p, &launch, 0, 1);
}

const struct tfm__cl_op tfm__cl_op_rms_norm = {.supports = supports, .plan = plan};
