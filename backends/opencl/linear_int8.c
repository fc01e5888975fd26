/* SPDX-License-Identifier: MIT
 * linear with activations of 8 bits (kernels/linear_int8.cl): x as integers in the workspace, once for
 * linears that follow one another with the same x, then the product. */
#include "backends/opencl/internal.h"
#include "lib/core/checked.h"

enum { QUANTIZE, PRODUCT }; /* launches */
/* as in the kernel: rows at a time, bytes of a block of them, floats of a block of a panel */
enum { ROWS = 8, QUANTS = 320, TILE = 160 };
enum { FEW_FLOATS = TFM_BLOCK / 4 + 2 }; /* of a block of a row, kernels/linear_int8_few.cl */
enum { QUANTIZE_COST = 4 };              /* of an element */
enum { PRODUCTS = 3 };                   /* of integers, in the time of one of floats */

int tfm__cl_linear_int8_takes(const struct tfm__cl_device *d, enum tfm_dtype weight)
{
    return atomic_load(&d->settings.act) == TFM__CL_ACT_INT8 &&
           (weight == TFM_DTYPE_Q4_0 || weight == TFM_DTYPE_Q4_1 || weight == TFM_DTYPE_Q8_0);
}

size_t tfm__cl_linear_int8_few_floats(size_t in, size_t rows)
{
    const size_t tile = rows > 4 ? 8 : rows > 2 ? 4 : rows;

    return tile * (in / TFM_BLOCK) * FEW_FLOATS;
}

/* Bytes of x as integers; those of all parts' tiles behind them. 0 on overflow. */
static int measure(const struct tfm__cl_device *d, const struct tfm__cl_linear *l, size_t *quants,
                   size_t *bytes)
{
    const size_t blocks = l->in / TFM_BLOCK;

    return !tfm__align_size(l->rows, ROWS, quants) &&
           !tfm__mul_size(*quants / ROWS, QUANTS * blocks, quants) &&
           !tfm__align_size(*quants, TFM_ALIGNMENT, quants) &&
           !tfm__mul_size(blocks, TILE * sizeof(float) * d->parts, bytes) &&
           !tfm__add_size(*bytes, *quants, bytes) && *bytes <= d->max_alloc;
}

int tfm__cl_linear_int8_fits(const struct tfm__cl_device *d, const struct tfm__cl_linear *l)
{
    size_t quants, bytes;

    return measure(d, l, &quants, &bytes);
}

enum tfm_status tfm__cl_linear_int8_plan(struct tfm__cl_planner *p, const struct tfm__cl_linear *l,
                                         const struct tfm__cl_launch *vector)
{
    struct tfm__cl_launch product = *vector;
    size_t quants, bytes;

    if (!measure(p->device, l, &quants, &bytes))
        return p->device->host->error(p->err, TFM_STATUS_UNSUPPORTED,
                                      "opencl: linear: the workspace is too large");
    tfm__cl_plan_workspace(p, bytes);
    product.kernel =
        (struct tfm__cl_kernel){"linear_int8.cl", "tfm_run_linear_int8", p->device->settings.int8};
    product.step.scratch = (uint32_t)(l->in / TFM_BLOCK * TILE);
    product.operands[0] = tfm__cl_operand_workspace(0);
    product.operands[4] = tfm__cl_operand_workspace(quants);
    product.cost = vector->cost / PRODUCTS;
    const struct tfm__cl_launch quantize = {
        {"linear_int8.cl", "tfm_run_int8_quantize", p->device->settings.int8},
        vector->step,
        2,
        {vector->operands[0], tfm__cl_operand_workspace(0)},
        QUANTIZE_COST * (uint64_t)l->in};
    const enum tfm_status status = tfm__cl_plan_launch(p, &quantize);
    return status == TFM_STATUS_OK ? tfm__cl_plan_launch(p, &product) : status;
}

enum tfm_status tfm__cl_linear_int8_run(struct tfm__cl_exec *e, const struct tfm__cl_node *node,
                                        uint32_t first, uint32_t rows, struct tfm_error *err)
{
    const enum tfm_status status =
        node->turned ? TFM_STATUS_OK : tfm__cl_launch(e, first + QUANTIZE, rows, err);

    return status == TFM_STATUS_OK ? tfm__cl_launch(e, first + PRODUCT, rows, err) : status;
}
