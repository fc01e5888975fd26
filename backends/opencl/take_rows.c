/* SPDX-License-Identifier: MIT
 * take_rows: one launch of kernels/take_rows.cl, which copies bytes of any type. */
#include "backends/opencl/internal.h"

static size_t row_bytes(const struct tfm__cl_device *d, const struct tfm_tensor *tensor)
{
    const struct tfm_dtype_info *info = d->host->dtype_info(tensor->dtype);
    return (size_t)tfm_tensor_row_elements(tensor) / info->block * info->bytes;
}

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    (void)capacity;
    if (!d->host->dtype_info(node->inputs[0]->dtype))
        return tfm__cl_refuse(reason, size, "dtype %d is unknown here",
                              (int)node->inputs[0]->dtype);
    return 1;
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    struct tfm__cl_launch launch = {
        .kernel = {NULL, "tfm_run_take_rows", NULL},
        .step = tfm__cl_step(node),
        .n_operands = 2,
        .operands = {tfm__cl_operand_of(p, node->inputs[0], TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->outputs[0], TFM__CL_RAW)},
    };

    launch.step.width = (uint32_t)row_bytes(p->device, node->inputs[0]);
    launch.cost = launch.step.width / 4;
    return tfm__cl_plan_each(p, &launch);
}

const struct tfm__cl_op tfm__cl_op_take_rows = {.supports = supports, .plan = plan};
