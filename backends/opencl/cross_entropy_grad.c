/* SPDX-License-Identifier: MIT
 * cross_entropy_grad: for each chunk of rows its logits, their slopes, and the products of these with the weight and
 * with x: four launches of kernels/cross_entropy.cl or cross_entropy_group.cl, and where the logits are products of
 * bf16 one before that rounds x. Loss and lse of the cross_entropy that goes with it, if there is one, come from the
 * same logits, by one launch more. A sum over the rows goes on from chunk to chunk in one order, so that the bits do
 * not depend on how many there are. */
#include "backends/opencl/cross_entropy.h"
#include "lib/core/checked.h"

/* Logits that are kept at once, and the fewest rows of a chunk: each reads and writes all of the weight's gradient. */
enum { LOGITS = 1 << 21, ROWS_LEAST = 128 };

/* at: in the workspace, behind what cross_entropy.h says: the logits of a chunk; as bf16 in the two orders that
 * products read, else the slopes lie in their place. Bytes. */
struct sizes {
    struct tfm__cl_logits logits;
    size_t rows, chunk, chunks, kept, straight, turned, all;
};

/* count [..] of size bytes each, behind s->all; *at: where. */
static int append(struct sizes *s, size_t count, size_t size, size_t *at)
{
    size_t bytes;

    *at = s->all;
    return !tfm__mul_size(count, size, &bytes) && !tfm__align_size(bytes, TFM_ALIGNMENT, &bytes) &&
           !tfm__add_size(s->all, bytes, &s->all);
}

static int append_rounded(struct sizes *s, const struct tfm__cl_matrix *product, size_t *at)
{
    size_t bytes;

    return tfm__cl_matrix_rounded(product, &bytes) && append(s, bytes, 1, at);
}

static int measure(const struct tfm__cl_device *d, const struct tfm_node *node,
                   const struct tfm_capacity *capacity, struct sizes *s)
{
    const size_t classes = (size_t)node->inputs[1]->shape[0];

    s->rows = (size_t)tfm_tensor_rows_most(node->inputs[0], capacity);
    s->chunk = LOGITS / classes / ROWS_LEAST * ROWS_LEAST;
    s->chunk = s->chunk < ROWS_LEAST ? ROWS_LEAST : s->chunk;
    s->chunk = s->chunk < s->rows ? s->chunk : s->rows;
    s->chunks = s->rows ? (s->rows + s->chunk - 1) / s->chunk : 0;
    if (classes > UINT32_MAX / 4 || /* strides of logits */
        !tfm__cl_logits_measure(d, node, capacity, s->chunk, TFM__CL_MATRIX_DEPTH, &s->logits))
        return 0;
    const struct tfm__cl_matrix straight = {.m = s->chunk, .k = classes},
                                turned = {.turned = 1, .m = classes, .k = s->chunk};
    s->all = s->logits.all;
    if (!append(s, s->chunk, TFM_LOGITS_STRIDE(classes) * sizeof(float), &s->kept))
        return 0;
    s->straight = s->turned = s->kept;
    if (s->logits.product.bf16 &&
        (!append_rounded(s, &straight, &s->straight) || !append_rounded(s, &turned, &s->turned)))
        return 0;
    return !d->max_alloc || s->all <= d->max_alloc;
}

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    struct sizes s;

    if (!tfm__cl_is_activation(d, node->inputs[1], reason, size))
        return 0;
    if (!measure(d, node, capacity, &s))
        return tfm__cl_refuse(reason, size,
                              "the workspace of %lld rows and %lld classes does not fit a buffer",
                              (long long)tfm_tensor_rows_most(node->inputs[0], capacity),
                              (long long)node->inputs[1]->shape[0]);
    return 1;
}

/* One launch of the chunk, with products' options where the logits are products of bf16. */
static enum tfm_status launch(struct tfm__cl_planner *p, const struct sizes *s,
                              struct tfm__cl_launch *l, const char *wide, const char *group)
{
    if (p->device->settings.shape == TFM__CL_GROUP) {
        l->kernel = (struct tfm__cl_kernel){"cross_entropy_group.cl", group, NULL};
        return tfm__cl_plan_group(p, l, 0, 1);
    }
    l->kernel = (struct tfm__cl_kernel){
        "cross_entropy.cl", wide, s->logits.product.bf16 ? p->device->settings.bf16_options : NULL};
    return tfm__cl_plan_launch(p, l);
}

static enum tfm_status plan_slopes(struct tfm__cl_planner *p, const struct tfm_node *node,
                                   const struct tfm_step *step, const struct sizes *s)
{
    struct tfm__cl_launch l = {
        .step = *step,
        .n_operands = 6,
        .operands = {tfm__cl_operand_of(p, node->inputs[2], TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->inputs[3], TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->inputs[4], TFM__CL_RAW),
                     tfm__cl_operand_workspace(s->kept), tfm__cl_operand_workspace(s->straight),
                     tfm__cl_operand_workspace(s->turned)},
        .cost = 16 * (uint64_t)step->out / s->chunks,
    };

    return launch(p, s, &l, "tfm_run_cross_entropy_slopes", "tfm_run_cross_entropy_slopes_group");
}

/* dx, or dweight: slopes in one of their orders times `factor`, to `to`. */
static enum tfm_status plan_product(struct tfm__cl_planner *p, const struct tfm_step *step,
                                    const struct sizes *s, size_t slopes,
                                    const struct tfm_tensor *factor, const struct tfm_tensor *to,
                                    const char *wide, const char *group)
{
    struct tfm__cl_launch l = {
        .step = *step,
        .n_operands = 4,
        .operands = {tfm__cl_operand_workspace(slopes), tfm__cl_operand_of(p, factor, TFM__CL_RAW),
                     tfm__cl_operand_of(p, to, TFM__CL_RAW), tfm__cl_operand_workspace(0)},
        .cost = (uint64_t)step->width * step->out / s->chunks,
    };

    return launch(p, s, &l, wide, group);
}

/* The launches of the rows [step->first, + step->most). */
static enum tfm_status plan_chunk(struct tfm__cl_planner *p, const struct tfm_node *node,
                                  const struct tfm_node *forward, const struct tfm_step *step,
                                  const struct sizes *s)
{
    const struct tfm_tensor *dweight = tfm__cl_input(node, 5);
    struct tfm__cl_logits logits = s->logits;

    logits.product.rounded = step->first > 0;
    enum tfm_status status =
        tfm__cl_logits_plan(p, node, step, &logits, tfm__cl_operand_workspace(s->kept),
                            (uint64_t)step->width * step->out / s->chunks);
    if (status == TFM_STATUS_OK && forward)
        status = tfm__cl_logits_merge(p, forward, step, &logits);
    if (status == TFM_STATUS_OK)
        status = plan_slopes(p, node, step, s);
    if (status == TFM_STATUS_OK)
        status = plan_product(p, step, s, s->straight, node->inputs[1], node->outputs[0],
                              "tfm_run_cross_entropy_grad_x", "tfm_run_cross_entropy_grad_x_group");
    if (status == TFM_STATUS_OK && dweight)
        status = plan_product(p, step, s, s->turned, node->inputs[0], dweight,
                              "tfm_run_cross_entropy_grad_w", "tfm_run_cross_entropy_grad_w_group");
    return status;
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    const struct tfm_node *forward = tfm__cl_cross_entropy_forward(p, node);
    enum tfm_status status = TFM_STATUS_OK;
    struct sizes s;

    if (!measure(p->device, node, p->capacity, &s))
        return p->device->host->error(p->err, TFM_STATUS_UNSUPPORTED,
                                      "opencl: cross_entropy_grad: the workspace is too large");
    struct tfm_step step = tfm__cl_logits_step(node, &s.logits);
    step.most = (uint32_t)s.chunk;
    tfm__cl_plan_workspace(p, s.all);
    for (size_t row = 0; row < s.rows && status == TFM_STATUS_OK; row += s.chunk) {
        step.first = (uint32_t)row;
        status = plan_chunk(p, node, forward, &step, &s);
    }
    return status;
}

const struct tfm__cl_op tfm__cl_op_cross_entropy_grad = {
    .supports = supports, .plan = plan, .alone = 1};
