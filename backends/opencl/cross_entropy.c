/* SPDX-License-Identifier: MIT
 * cross_entropy: one launch that makes what each chunk of classes adds (kernels/cross_entropy.cl or
 * cross_entropy_group.cl), and one that puts the chunks together (cross_entropy_merge.cl). */
#include "backends/opencl/internal.h"
#include "lib/core/checked.h"

/* Classes of a chunk. */
enum { COLUMNS = 512 };
/* Floats that the wide kernel keeps for each of the rows that it takes together. */
enum { ROWS = 128, STATE = 48, WIDTH = 32 };

struct sizes {
    size_t scratch, scratch_bytes, partial_bytes, rounded_bytes;
    struct tfm__cl_matrix product; /* of the logits, if they are one of bf16 */
};

static int measure(const struct tfm__cl_device *d, const struct tfm_node *node,
                   const struct tfm_capacity *capacity, struct sizes *s)
{
    const size_t width = (size_t)node->inputs[1]->shape[1];
    const size_t chunks = ((size_t)node->inputs[1]->shape[0] + COLUMNS - 1) / COLUMNS;
    const size_t rows = (size_t)tfm_tensor_rows_most(node->inputs[0], capacity);
    size_t all;

    s->product = (struct tfm__cl_matrix){.file = "cross_entropy.cl",
                                         .m = rows,
                                         .k = width,
                                         .bf16 = tfm__cl_matrix_is_bf16(d, node->inputs[1])};
    s->rounded_bytes = 0;
    if ((s->product.bf16 && !tfm__cl_matrix_rounded(&s->product, &s->rounded_bytes)) ||
        tfm__mul_size(width, WIDTH, &s->scratch) ||
        tfm__add_size(s->scratch, ROWS * STATE, &s->scratch) ||
        tfm__mul_size(s->scratch, d->parts * sizeof(float), &s->scratch_bytes) ||
        tfm__mul_size(rows, chunks * 4 * sizeof(float), &s->partial_bytes) ||
        tfm__align_size(s->partial_bytes, TFM_ALIGNMENT, &s->partial_bytes) ||
        tfm__align_size(s->scratch_bytes, TFM_ALIGNMENT, &s->scratch_bytes) ||
        tfm__add_size(s->scratch_bytes, s->partial_bytes, &all) ||
        tfm__add_size(all, s->rounded_bytes, &all))
        return 0;
    return s->scratch <= UINT32_MAX && (!d->max_alloc || all <= d->max_alloc);
}

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    struct sizes s;

    if (!tfm__cl_is_activation(d, node->inputs[1], reason, size))
        return 0;
    if (!measure(d, node, capacity, &s))
        return tfm__cl_refuse(reason, size, "the workspace of %lld classes does not fit a buffer",
                              (long long)node->inputs[1]->shape[0]);
    return 1;
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    const struct tfm_tensor *weight = node->inputs[1];
    const int group = p->device->settings.shape == TFM__CL_GROUP;
    struct tfm_step step = tfm__cl_step(node);
    struct sizes s;

    if (!measure(p->device, node, p->capacity, &s))
        return p->device->host->error(p->err, TFM_STATUS_UNSUPPORTED,
                                      "opencl: cross_entropy: the workspace is too large");
    step.width = (uint32_t)weight->shape[1];
    step.out = (uint32_t)weight->shape[0];
    step.columns = COLUMNS;
    step.scratch = (uint32_t)s.scratch;
    step.softcap = (float)node->attrs.softcap;
    tfm__cl_plan_workspace(p, s.scratch_bytes + s.partial_bytes + s.rounded_bytes);
    const struct tfm__cl_operand targets = tfm__cl_operand_of(p, node->inputs[2], TFM__CL_RAW);
    const struct tfm__cl_operand partial = tfm__cl_operand_workspace(s.scratch_bytes);
    struct tfm__cl_launch chunks = {
        .kernel = group
                      ? (struct tfm__cl_kernel){"cross_entropy_group.cl",
                                                "tfm_run_cross_entropy_group", NULL}
                      : (struct tfm__cl_kernel){"cross_entropy.cl", "tfm_run_cross_entropy", NULL},
        .step = step,
        .n_operands = 5,
        .operands = {tfm__cl_operand_of(p, node->inputs[0], TFM__CL_RAW),
                     tfm__cl_operand_of(p, weight, TFM__CL_RAW), targets, partial,
                     tfm__cl_operand_workspace(0)},
        .cost = (uint64_t)step.width * step.out,
    };
    const struct tfm__cl_launch merge = {
        .kernel = {"cross_entropy_merge.cl", "tfm_run_cross_entropy_merge", NULL},
        .step = step,
        .n_operands = 4,
        .operands = {partial, targets, tfm__cl_operand_of(p, node->outputs[0], TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->outputs[1], TFM__CL_RAW)},
        .cost = 16 * (uint64_t)(step.out / COLUMNS + 1),
    };
    enum tfm_status status = TFM_STATUS_OK;
    if (s.product.bf16)
        status = tfm__cl_matrix_round(p, &chunks, &s.product, s.scratch_bytes + s.partial_bytes);
    if (status == TFM_STATUS_OK)
        status = group ? tfm__cl_plan_group(p, &chunks, 0, 1) : tfm__cl_plan_launch(p, &chunks);
    return status == TFM_STATUS_OK ? tfm__cl_plan_each(p, &merge) : status;
}

const struct tfm__cl_op tfm__cl_op_cross_entropy = {.supports = supports, .plan = plan, .alone = 1};
