/* SPDX-License-Identifier: MIT
 * cross_entropy: one launch that makes what each chunk of classes adds (kernels/cross_entropy.cl or
 * cross_entropy_group.cl), and one that puts the chunks together (cross_entropy_merge.cl). Where a plan has its
 * gradient too, cross_entropy_grad does both and keeps the logits of its chunk of rows in between. */
#include "backends/opencl/cross_entropy.h"
#include "lib/core/checked.h"

/* Classes of a chunk. */
enum { COLUMNS = 512 };
/* Floats that the wide kernel keeps for each of the rows that it takes together. */
enum { ROWS = 128, STATE = 48, WIDTH = TFM__CL_MATRIX_WIDTH };

int tfm__cl_logits_measure(const struct tfm__cl_device *d, const struct tfm_node *node,
                           const struct tfm_capacity *capacity, size_t chunk, size_t depth,
                           struct tfm__cl_logits *l)
{
    const size_t width = (size_t)node->inputs[1]->shape[1];
    const size_t chunks = ((size_t)node->inputs[1]->shape[0] + COLUMNS - 1) / COLUMNS;
    const size_t rows = (size_t)tfm_tensor_rows_most(node->inputs[0], capacity);
    size_t bytes, products;

    l->product = (struct tfm__cl_matrix){.file = "cross_entropy.cl",
                                         .m = rows,
                                         .k = width,
                                         .bf16 = tfm__cl_matrix_is_bf16(d, node->inputs[1])};
    if (tfm__mul_size(width, WIDTH, &l->scratch) ||
        tfm__add_size(l->scratch, ROWS * STATE, &l->scratch) ||
        tfm__mul_size(depth, WIDTH, &products))
        return 0;
    l->scratch = l->scratch < products ? products : l->scratch;
    if (tfm__mul_size(l->scratch, d->parts * sizeof(float), &l->partial) ||
        tfm__align_size(l->partial, TFM_ALIGNMENT, &l->partial) ||
        tfm__mul_size(chunk, chunks * 4 * sizeof(float), &bytes) ||
        tfm__add_size(l->partial, bytes, &l->rounded) ||
        tfm__align_size(l->rounded, TFM_ALIGNMENT, &l->rounded))
        return 0;
    bytes = 0;
    return (!l->product.bf16 || tfm__cl_matrix_rounded(&l->product, &bytes)) &&
           !tfm__add_size(l->rounded, bytes, &l->all) && l->scratch <= UINT32_MAX;
}

struct tfm_step tfm__cl_logits_step(const struct tfm_node *node,
                                    const struct tfm__cl_logits *logits)
{
    struct tfm_step step = tfm__cl_step(node);

    step.width = (uint32_t)node->inputs[1]->shape[1];
    step.out = (uint32_t)node->inputs[1]->shape[0];
    step.columns = COLUMNS;
    step.scratch = (uint32_t)logits->scratch;
    step.softcap = (float)node->attrs.softcap;
    return step;
}

enum tfm_status tfm__cl_logits_plan(struct tfm__cl_planner *p, const struct tfm_node *node,
                                    const struct tfm_step *step, const struct tfm__cl_logits *l,
                                    struct tfm__cl_operand kept, uint64_t cost)
{
    struct tfm__cl_launch chunks = {
        .kernel = {"cross_entropy.cl", "tfm_run_cross_entropy", NULL},
        .step = *step,
        .n_operands = 6,
        .operands = {tfm__cl_operand_of(p, node->inputs[0], TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->inputs[1], TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->inputs[2], TFM__CL_RAW),
                     tfm__cl_operand_workspace(l->partial), kept, tfm__cl_operand_workspace(0)},
        .cost = cost,
    };
    enum tfm_status status = TFM_STATUS_OK;

    if (p->device->settings.shape == TFM__CL_GROUP) {
        chunks.kernel =
            (struct tfm__cl_kernel){"cross_entropy_group.cl", "tfm_run_cross_entropy_group", NULL};
        return tfm__cl_plan_group(p, &chunks, 0, 1);
    }
    if (l->product.bf16)
        status = tfm__cl_matrix_round(p, &chunks, &l->product, l->rounded);
    return status == TFM_STATUS_OK ? tfm__cl_plan_launch(p, &chunks) : status;
}

enum tfm_status tfm__cl_logits_merge(struct tfm__cl_planner *p, const struct tfm_node *node,
                                     const struct tfm_step *step, const struct tfm__cl_logits *l)
{
    const struct tfm__cl_launch merge = {
        .kernel = {"cross_entropy_merge.cl", "tfm_run_cross_entropy_merge", NULL},
        .step = *step,
        .n_operands = 4,
        .operands = {tfm__cl_operand_workspace(l->partial),
                     tfm__cl_operand_of(p, node->inputs[2], TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->outputs[0], TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->outputs[1], TFM__CL_RAW)},
        .cost = 16 * (uint64_t)(step->out / COLUMNS + 1),
    };

    return tfm__cl_plan_each(p, &merge);
}

static int measure(const struct tfm__cl_device *d, const struct tfm_node *node,
                   const struct tfm_capacity *capacity, struct tfm__cl_logits *logits)
{
    const size_t rows = (size_t)tfm_tensor_rows_most(node->inputs[0], capacity);

    return tfm__cl_logits_measure(d, node, capacity, rows, 0, logits) &&
           (!d->max_alloc || logits->all <= d->max_alloc);
}

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    struct tfm__cl_logits logits;

    if (!tfm__cl_is_activation(d, node->inputs[1], reason, size))
        return 0;
    if (!measure(d, node, capacity, &logits))
        return tfm__cl_refuse(reason, size, "the workspace of %lld classes does not fit a buffer",
                              (long long)node->inputs[1]->shape[0]);
    return 1;
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    struct tfm__cl_logits logits;

    if (tfm__cl_cross_entropy_gradient(p, node))
        return TFM_STATUS_OK;
    if (!measure(p->device, node, p->capacity, &logits))
        return p->device->host->error(p->err, TFM_STATUS_UNSUPPORTED,
                                      "opencl: cross_entropy: the workspace is too large");
    const struct tfm_step step = tfm__cl_logits_step(node, &logits);
    tfm__cl_plan_workspace(p, logits.all);
    const enum tfm_status status =
        tfm__cl_logits_plan(p, node, &step, &logits, tfm__cl_operand_of(p, NULL, TFM__CL_RAW),
                            (uint64_t)step.width * step.out);
    return status == TFM_STATUS_OK ? tfm__cl_logits_merge(p, node, &step, &logits) : status;
}

const struct tfm__cl_op tfm__cl_op_cross_entropy = {.supports = supports, .plan = plan, .alone = 1};
