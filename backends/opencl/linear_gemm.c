/* SPDX-License-Identifier: MIT
 * linear through CLBlast: x turned, then block by block of output rows: weights unpacked, SGEMM, product
 * stored with the bias (kernels/gemm.cl). */
#include "backends/opencl/internal.h"
#include "lib/core/checked.h"

enum { TURN, BLOCKS };           /* launches; then unpack and store of each block */
enum { WEIGHT_BYTES = 4 << 20 }; /* of a block of unpacked weights, about: stays in the caches */
enum { UNPACK_COST = 2, STORE_COST = 2 }; /* of an element */

static struct tfm__cl_kernel gemm_kernel(const char *name)
{
    return (struct tfm__cl_kernel){"gemm.cl", name, NULL};
}

/* Sizes of the padded matrices. */
struct shape {
    size_t in16, rows16, panels, block; /* block: panels unpacked at once */
    struct tfm__cl_gemm_sizes gemm;     /* temp is left 0 */
};

static int matrix_bytes(size_t a, size_t b, size_t *bytes)
{
    return tfm__mul_size(a, b, bytes) || tfm__mul_size(*bytes, sizeof(float), bytes) ||
           tfm__align_size(*bytes, TFM_ALIGNMENT, bytes);
}

/* 0 on overflow. */
static int measure(const struct tfm__cl_device *d, const struct tfm__cl_linear *l, struct shape *s)
{
    size_t column;

    s->panels = (l->out + TFM_PANEL - 1) / TFM_PANEL;
    s->gemm = (struct tfm__cl_gemm_sizes){0, 0, 0, 0};
    if (tfm__align_size(l->in, 16, &s->in16) || tfm__align_size(l->rows, 16, &s->rows16) ||
        matrix_bytes(s->in16, TFM_PANEL, &column))
        return 0;
    s->block = WEIGHT_BYTES / column > 0 ? WEIGHT_BYTES / column : 1;
    if (s->block > s->panels)
        s->block = s->panels;
    return !matrix_bytes(s->in16, s->rows16, &s->gemm.x) &&
           !matrix_bytes(s->in16, s->block * TFM_PANEL, &s->gemm.weight) &&
           !matrix_bytes(s->rows16, s->block * TFM_PANEL, &s->gemm.product) &&
           s->gemm.x <= d->max_alloc && s->gemm.weight <= d->max_alloc &&
           s->gemm.product <= d->max_alloc;
}

int tfm__cl_linear_gemm_fits(const struct tfm__cl_device *d, const struct tfm__cl_linear *l)
{
    struct shape s;

    return measure(d, l, &s);
}

/* ---- plan ---- */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The matrices of all linears of a program share one place, each as large as the largest. */
static enum tfm_status plan_sizes(struct tfm__cl_planner *p, struct shape *s)
{
    struct tfm__cl_gemm_sizes *g = &p->program->gemm;

    const size_t last = (s->panels - 1) % s->block + 1; /* panels of the last block */
    const size_t sizes[] = {s->block, last};

    enum tfm_status status = tfm__cl_gemm_prepare(p->device, p->err);
    for (size_t i = 0; i < 2 && status == TFM_STATUS_OK; i++) {
        size_t temp = 0;
        status =
            tfm__cl_gemm_temp(p->device, sizes[i] * TFM_PANEL, s->rows16, s->in16, &temp, p->err);
        s->gemm.temp = larger(s->gemm.temp, temp);
    }
    if (status != TFM_STATUS_OK)
        return status;
    const size_t align = p->device->base_align;
    size_t *const all[] = {&g->x, &g->weight, &g->product, &g->temp};
    const size_t mine[] = {s->gemm.x, s->gemm.weight, s->gemm.product, s->gemm.temp};
    size_t total = 0;
    for (size_t i = 0; i < sizeof mine / sizeof *mine; i++) {
        size_t bytes;
        if (tfm__align_size(larger(mine[i], 1), align, &bytes) ||
            tfm__add_size(total, *all[i] = larger(*all[i], bytes), &total))
            return p->device->host->error(p->err, TFM_STATUS_NOMEM,
                                          "opencl: linear: the workspace is too large");
    }
    tfm__cl_plan_workspace(p, total);
    return TFM_STATUS_OK;
}

static enum tfm_status plan_launches(struct tfm__cl_planner *p, const struct tfm_node *node,
                                     const struct shape *s, struct tfm_step step)
{
    const struct tfm__cl_operand x = {.place = TFM__CL_GEMM_X, .type = TFM_STEP_F32};
    const struct tfm__cl_operand weight = {.place = TFM__CL_GEMM_WEIGHT, .type = TFM_STEP_F32};
    const struct tfm__cl_operand product = {.place = TFM__CL_GEMM_PRODUCT, .type = TFM_STEP_F32};
    const struct tfm__cl_operand packed = tfm__cl_operand_of(p, node->inputs[1], TFM__CL_PANELS);
    const struct tfm__cl_operand bias =
        tfm__cl_operand_of(p, node->n_inputs > 2 ? node->inputs[2] : NULL, TFM__CL_RAW);
    const struct tfm__cl_launch turn = {gemm_kernel("tfm_run_gemm_turn"),
                                        step,
                                        2,
                                        {tfm__cl_operand_of(p, node->inputs[0], TFM__CL_RAW), x},
                                        s->in16};
    enum tfm_status status = tfm__cl_plan_each(p, &turn);

    for (size_t first = 0; first < s->panels && status == TFM_STATUS_OK; first += s->block) {
        const size_t left = s->panels - first;
        step.panel = (uint32_t)first;
        step.panels = (uint32_t)(left < s->block ? left : s->block);
        const uint64_t columns = (uint64_t)step.panels * TFM_PANEL;
        const struct tfm__cl_launch unpack = {gemm_kernel("tfm_run_gemm_unpack"),
                                              step,
                                              2,
                                              {packed, weight},
                                              UNPACK_COST * columns * s->in16};
        const struct tfm__cl_launch store = {
            gemm_kernel("tfm_run_gemm_store"),
            step,
            3,
            {product, bias, tfm__cl_operand_of(p, node->outputs[0], TFM__CL_RAW)},
            STORE_COST * columns};
        status = tfm__cl_plan_each(p, &unpack);
        if (status == TFM_STATUS_OK)
            status = tfm__cl_plan_each(p, &store);
    }
    return status;
}

enum tfm_status tfm__cl_linear_gemm_plan(struct tfm__cl_planner *p, const struct tfm_node *node,
                                         const struct tfm__cl_linear *l, struct tfm_step step)
{
    struct shape s;

    if (!measure(p->device, l, &s))
        return p->device->host->error(p->err, TFM_STATUS_UNSUPPORTED,
                                      "opencl: linear: the workspace is too large");
    const enum tfm_status status = plan_sizes(p, &s);
    return status == TFM_STATUS_OK ? plan_launches(p, node, &s, step) : status;
}

/* ---- run ---- */

enum tfm_status tfm__cl_linear_gemm_run(struct tfm__cl_exec *e, const struct tfm__cl_node *node,
                                        uint32_t first, uint32_t rows, struct tfm_error *err)
{
    const size_t rows16 = ((size_t)rows + 15) & ~(size_t)15;
    const uint32_t end = node->first + node->count;
    enum tfm_status status = TFM_STATUS_OK;

    if (!node->turned)
        status = tfm__cl_launch(e, first + TURN, rows, err);
    for (uint32_t i = first + BLOCKS; i < end && status == TFM_STATUS_OK; i += 2) {
        const struct tfm_step *step = &e->program->launches[i].step;
        const size_t in16 = ((size_t)step->width + 15) & ~(size_t)15;
        status = tfm__cl_launch(e, i, 1, err);
        if (status == TFM_STATUS_OK)
            status = tfm__cl_gemm(e, (size_t)step->panels * TFM_PANEL, rows16, in16, err);
        if (status == TFM_STATUS_OK)
            status = tfm__cl_launch(e, i + 1, rows, err);
    }
    return status;
}
