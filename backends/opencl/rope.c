/* SPDX-License-Identifier: MIT
 * rope: one launch of kernels/rope.cl. */
#include "backends/opencl/internal.h"

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    (void)capacity;
    if (node->attrs.rope_style != TFM_ROPE_ADJACENT && node->attrs.rope_style != TFM_ROPE_HALVES)
        return tfm__cl_refuse(reason, size, "rope_style %d is unknown here",
                              (int)node->attrs.rope_style);
    if (node->attrs.rope_layout < TFM_ROPE_ROWS || node->attrs.rope_layout > TFM_ROPE_TOKENS_FIRST)
        return tfm__cl_refuse(reason, size, "rope_layout %d is unknown here",
                              (int)node->attrs.rope_layout);
    if (node->inputs[2]->dtype != TFM_DTYPE_F32)
        return tfm__cl_refuse(reason, size, "the table must be f32");
    return tfm__cl_is_activation(d, node->inputs[0], reason, size);
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    const struct tfm_tensor *x = node->inputs[0], *table = node->inputs[2];
    const int heads_first = node->attrs.rope_layout == TFM_ROPE_HEADS_FIRST;
    const int tokens_first = node->attrs.rope_layout == TFM_ROPE_TOKENS_FIRST;
    struct tfm__cl_launch launch = {
        .kernel = {NULL, "tfm_run_rope", NULL},
        .step = tfm__cl_step(node),
        .n_operands = 4,
        .operands = {tfm__cl_operand_of(p, x, TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->inputs[1], TFM__CL_RAW),
                     tfm__cl_operand_of(p, table, TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->outputs[0], TFM__CL_RAW)},
    };

    launch.step.heads = (uint32_t)x->shape[tokens_first ? 2 : 1];
    launch.step.vectors = tokens_first ? launch.step.heads : 1;
    launch.step.head_dim = (uint32_t)x->shape[x->rank - 1];
    launch.step.tokens = heads_first    ? (uint32_t)x->shape[2]
                         : tokens_first ? (uint32_t)x->shape[1]
                                        : 1;
    launch.step.shared = (heads_first || tokens_first) && node->inputs[1]->rank == 1;
    launch.step.rotated = (uint32_t)table->shape[1] * 2;
    launch.step.halves = node->attrs.rope_style == TFM_ROPE_HALVES;
    launch.step.inverse = node->attrs.inverse != 0;
    launch.cost = 2 * (uint64_t)tfm_tensor_row_elements(x);
    return tfm__cl_plan_each(p, &launch);
}

const struct tfm__cl_op tfm__cl_op_rope = {.supports = supports, .plan = plan};
