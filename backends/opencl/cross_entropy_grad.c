/* SPDX-License-Identifier: MIT
 * cross_entropy_grad: for each chunk of classes the slopes of its logits, then their products with x and with
 * the weight: three launches of kernels/cross_entropy.cl or cross_entropy_group.cl, and where they are products of
 * bf16 one before each that rounds x or the slopes. A sum over the classes goes
 * on from chunk to chunk in one order, so that the bits do not depend on how many there are. */
#include <string.h>

#include "backends/opencl/internal.h"
#include "lib/core/checked.h"

/* Slopes that are kept at once, in floats, and the fewest classes of a chunk. */
enum { SLOPES = 1 << 20, COLUMNS_LEAST = 512 };
/* Of matrix.cl: columns of a tile, values of k in it. */
enum { WIDTH = TFM__CL_MATRIX_WIDTH, DEPTH = TFM__CL_MATRIX_DEPTH };

/* Operand 0 of each is what is rounded for products of bf16. */
enum { SLOPES_PRODUCT, GRAD_X, GRAD_W, PRODUCTS };

/* at, all: bytes; the workspace is tiles, slopes, then what is rounded for each product. */
struct sizes {
    size_t columns, scratch, scratch_bytes, slopes_bytes, at[PRODUCTS], all;
    struct tfm__cl_matrix products[PRODUCTS];
};

static int measure_rounded(const struct tfm__cl_device *d, const struct tfm_node *node, size_t rows,
                           struct sizes *s)
{
    const size_t width = (size_t)node->inputs[1]->shape[1];
    const int bf16 = tfm__cl_matrix_is_bf16(d, node->inputs[1]);

    s->products[SLOPES_PRODUCT] = (struct tfm__cl_matrix){.m = rows, .k = width};
    s->products[GRAD_X] = (struct tfm__cl_matrix){.m = rows, .k = s->columns};
    s->products[GRAD_W] = (struct tfm__cl_matrix){.turned = 1, .m = s->columns, .k = rows};
    for (int i = 0; i < PRODUCTS; i++) {
        size_t bytes = 0;
        s->products[i].file = "cross_entropy.cl";
        s->products[i].bf16 = bf16;
        s->at[i] = s->all;
        if ((bf16 && !tfm__cl_matrix_rounded(&s->products[i], &bytes)) ||
            tfm__add_size(s->all, bytes, &s->all))
            return 0;
    }
    return 1;
}

static int measure(const struct tfm__cl_device *d, const struct tfm_node *node,
                   const struct tfm_capacity *capacity, struct sizes *s)
{
    const size_t classes = (size_t)node->inputs[1]->shape[0];
    const size_t width = (size_t)node->inputs[1]->shape[1];
    const size_t rows = (size_t)tfm_tensor_rows_most(node->inputs[0], capacity);
    size_t depth = width;

    s->columns = rows ? SLOPES / rows / WIDTH * WIDTH : classes;
    s->columns = s->columns < COLUMNS_LEAST ? COLUMNS_LEAST : s->columns;
    s->columns = s->columns < classes ? s->columns : classes;
    depth = depth < DEPTH ? DEPTH : depth; /* of the products: rows or columns, up to DEPTH */
    if (tfm__mul_size(depth, WIDTH, &s->scratch) ||
        tfm__mul_size(s->scratch, d->parts * sizeof(float), &s->scratch_bytes) ||
        tfm__mul_size(rows, s->columns * sizeof(float), &s->slopes_bytes) ||
        tfm__align_size(s->scratch_bytes, TFM_ALIGNMENT, &s->scratch_bytes) ||
        tfm__align_size(s->slopes_bytes, TFM_ALIGNMENT, &s->slopes_bytes) ||
        tfm__add_size(s->scratch_bytes, s->slopes_bytes, &s->all))
        return 0;
    return measure_rounded(d, node, rows, s) && s->scratch <= UINT32_MAX &&
           (!d->max_alloc || s->all <= d->max_alloc);
}

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    struct sizes s;

    if (!tfm__cl_is_activation(d, node->inputs[1], reason, size))
        return 0;
    if (!measure(d, node, capacity, &s))
        return tfm__cl_refuse(reason, size, "the workspace of %lld rows does not fit a buffer",
                              (long long)tfm_tensor_rows_most(node->inputs[0], capacity));
    return 1;
}

static enum tfm_status append(struct tfm__cl_planner *p, const char *wide, const char *group,
                              const struct tfm__cl_launch *launch,
                              const struct tfm__cl_matrix *product, size_t at)
{
    struct tfm__cl_launch l = *launch;

    l.operands[l.n_operands++] = tfm__cl_operand_workspace(0);
    l.cost = (uint64_t)l.step.width * l.step.columns;
    if (p->device->settings.shape == TFM__CL_GROUP) {
        l.kernel = (struct tfm__cl_kernel){"cross_entropy_group.cl", group, NULL};
        return tfm__cl_plan_group(p, &l, 0, 1);
    }
    l.kernel = (struct tfm__cl_kernel){"cross_entropy.cl", wide, NULL};
    const enum tfm_status status =
        product->bf16 ? tfm__cl_matrix_round(p, &l, product, at) : TFM_STATUS_OK;
    return status == TFM_STATUS_OK ? tfm__cl_plan_launch(p, &l) : status;
}

/* The launches of classes [step.column, step.column + step.columns). */
static enum tfm_status plan_chunk(struct tfm__cl_planner *p, const struct tfm_node *node,
                                  const struct tfm_step *step, const struct sizes *s)
{
    const struct tfm__cl_operand slopes = tfm__cl_operand_workspace(s->scratch_bytes);
    struct tfm__cl_matrix products[PRODUCTS];
    const struct tfm__cl_operand x = tfm__cl_operand_of(p, node->inputs[0], TFM__CL_RAW);
    const struct tfm__cl_operand weight = tfm__cl_operand_of(p, node->inputs[1], TFM__CL_RAW);
    const struct tfm_tensor *dweight = tfm__cl_input(node, 5);
    const struct tfm__cl_launch slope = {
        .step = *step,
        .n_operands = 6,
        .operands = {x, weight, tfm__cl_operand_of(p, node->inputs[2], TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->inputs[3], TFM__CL_RAW),
                     tfm__cl_operand_of(p, node->inputs[4], TFM__CL_RAW), slopes}};
    const struct tfm__cl_launch grad_x = {
        .step = *step,
        .n_operands = 3,
        .operands = {slopes, weight, tfm__cl_operand_of(p, node->outputs[0], TFM__CL_RAW)}};
    const struct tfm__cl_launch grad_w = {
        .step = *step,
        .n_operands = 3,
        .operands = {slopes, x, tfm__cl_operand_of(p, dweight, TFM__CL_RAW)}};
    memcpy(products, s->products, sizeof products);
    products[SLOPES_PRODUCT].rounded = step->column > 0;
    products[GRAD_X].k = products[GRAD_W].m = step->columns;
    enum tfm_status status =
        append(p, "tfm_run_cross_entropy_slopes", "tfm_run_cross_entropy_slopes_group", &slope,
               &products[SLOPES_PRODUCT], s->at[SLOPES_PRODUCT]);

    if (status == TFM_STATUS_OK)
        status = append(p, "tfm_run_cross_entropy_grad_x", "tfm_run_cross_entropy_grad_x_group",
                        &grad_x, &products[GRAD_X], s->at[GRAD_X]);
    if (status == TFM_STATUS_OK && dweight)
        status = append(p, "tfm_run_cross_entropy_grad_w", "tfm_run_cross_entropy_grad_w_group",
                        &grad_w, &products[GRAD_W], s->at[GRAD_W]);
    return status;
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    const size_t classes = (size_t)node->inputs[1]->shape[0];
    struct tfm_step step = tfm__cl_step(node);
    enum tfm_status status = TFM_STATUS_OK;
    struct sizes s;

    if (!measure(p->device, node, p->capacity, &s))
        return p->device->host->error(p->err, TFM_STATUS_UNSUPPORTED,
                                      "opencl: cross_entropy_grad: the workspace is too large");
    step.width = (uint32_t)node->inputs[1]->shape[1];
    step.out = (uint32_t)classes;
    step.scratch = (uint32_t)s.scratch;
    step.softcap = (float)node->attrs.softcap;
    tfm__cl_plan_workspace(p, s.all);
    for (size_t column = 0; column < classes && status == TFM_STATUS_OK; column += s.columns) {
        step.column = (uint32_t)column;
        step.columns = (uint32_t)(classes - column < s.columns ? classes - column : s.columns);
        status = plan_chunk(p, node, &step, &s);
    }
    return status;
}

const struct tfm__cl_op tfm__cl_op_cross_entropy_grad = {
    .supports = supports, .plan = plan, .alone = 1};
