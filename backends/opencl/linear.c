/* SPDX-License-Identifier: MIT
 * linear: for few rows one launch of the matrix-vector kernel of the weight's type (kernels/linear.cl);
 * for many, x turned, then block by block of output rows: weights unpacked, SGEMM, product stored with
 * the bias (kernels/gemm.cl). */
#include "backends/opencl/internal.h"
#include "lib/core/checked.h"

enum { VECTOR, TURN, BLOCKS };   /* launches; then unpack and store of each block */
enum { WEIGHT_BYTES = 4 << 20 }; /* of a block of unpacked weights, about: stays in the caches */
enum { UNPACK_COST = 2, STORE_COST = 2 }; /* of an element */

/* The matrix-vector kernel is a program for each type of weight. */
static struct tfm__cl_kernel vector_kernel(enum tfm_dtype dtype)
{
    static const char *const options[TFM_DTYPE_COUNT] = {
#define TFM_DTYPE(id, NAME, name, block, bytes, class, minor) \
    [TFM_DTYPE_##NAME] = "-DTFM_LINEAR_TYPE=" #id,
#include <tfm/dtypes.def>
#undef TFM_DTYPE
    };
    return (struct tfm__cl_kernel){"linear.cl", "tfm_run_linear", options[dtype]};
}

static struct tfm__cl_kernel gemm_kernel(const char *name)
{
    return (struct tfm__cl_kernel){"gemm.cl", name, NULL};
}

/* Vectors that the linear acts on; supports() has seen that they fit 31 bits. */
static uint32_t capacity_rows(const struct tfm_node *node, const struct tfm_capacity *capacity)
{
    const uint32_t rows =
        node->outputs[0]->extent == TFM_EXTENT_OUT_ROWS ? capacity->out_rows : capacity->rows;
    return rows * tfm__cl_vectors(node->inputs[0]);
}

/* Sizes of the padded matrices; 0 on overflow. */
struct shape {
    size_t in, in16, out, panels, block; /* block: panels unpacked at once */
    size_t rows, rows16;                 /* at full capacity */
    size_t sums, scratch;                /* matrix-vector: floats of a part, bytes of all parts */
    struct tfm__cl_gemm_sizes gemm;      /* temp is left 0 */
};

static int matrix_bytes(size_t a, size_t b, size_t *bytes)
{
    return tfm__mul_size(a, b, bytes) || tfm__mul_size(*bytes, sizeof(float), bytes) ||
           tfm__align_size(*bytes, TFM_ALIGNMENT, bytes);
}

static int measure(const struct tfm__cl_device *d, const struct tfm_node *node,
                   const struct tfm_capacity *capacity, struct shape *s)
{
    const struct tfm_tensor *weight = node->inputs[1];
    const size_t few = TFM__CL_GEMM_ROWS - 1;
    size_t column;

    s->in = (size_t)weight->shape[1];
    s->out = (size_t)weight->shape[0];
    s->panels = (s->out + TFM_PANEL - 1) / TFM_PANEL;
    s->rows = capacity_rows(node, capacity);
    s->gemm = (struct tfm__cl_gemm_sizes){0, 0, 0, 0};
    s->sums = (s->in / TFM_BLOCK + 1) * (s->rows < few ? s->rows : few);
    if (tfm__align_size(s->in, 16, &s->in16) || tfm__align_size(s->rows, 16, &s->rows16) ||
        matrix_bytes(s->in16, TFM_PANEL, &column) ||
        tfm__mul_size(s->sums, d->parts * sizeof(float), &s->scratch) || s->sums > UINT32_MAX)
        return 0;
    s->block = WEIGHT_BYTES / column > 0 ? WEIGHT_BYTES / column : 1;
    if (s->block > s->panels)
        s->block = s->panels;
    if (s->rows < TFM__CL_GEMM_ROWS)
        return 1;
    return !matrix_bytes(s->in16, s->rows16, &s->gemm.x) &&
           !matrix_bytes(s->in16, s->block * TFM_PANEL, &s->gemm.weight) &&
           !matrix_bytes(s->rows16, s->block * TFM_PANEL, &s->gemm.product) &&
           s->gemm.x <= d->max_alloc && s->gemm.weight <= d->max_alloc &&
           s->gemm.product <= d->max_alloc;
}

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    const struct tfm_tensor *x = node->inputs[0], *weight = node->inputs[1];
    const struct tfm_tensor *bias = node->n_inputs > 2 ? node->inputs[2] : NULL;
    const struct tfm_dtype_info *info = d->host->dtype_info(weight->dtype);
    struct shape s;

    if (x->dtype != TFM_DTYPE_F32)
        return tfm__cl_refuse(reason, size, "x must be f32");
    if (!tfm__cl_vectors_fit(x, capacity, reason, size))
        return 0;
    if (tfm__cl_panel_bytes(weight->dtype, (size_t)weight->shape[1]) == 0)
        return tfm__cl_refuse(reason, size, "no kernel for a weight of %s with rows of %lld",
                              info ? info->name : "?", (long long)weight->shape[1]);
    if (!measure(d, node, capacity, &s))
        return tfm__cl_refuse(reason, size,
                              "%u rows of %lld need more workspace than a buffer holds",
                              capacity_rows(node, capacity), (long long)weight->shape[1]);
    return !bias || tfm__cl_is_activation(d, bias, reason, size);
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

static enum tfm_status plan_gemm(struct tfm__cl_planner *p, const struct tfm_node *node,
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
    enum tfm_status status = tfm__cl_plan_launch(p, &turn);

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
        status = tfm__cl_plan_launch(p, &unpack);
        if (status == TFM_STATUS_OK)
            status = tfm__cl_plan_launch(p, &store);
    }
    return status;
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    const struct tfm_tensor *bias = node->n_inputs > 2 ? node->inputs[2] : NULL;
    struct tfm_step step = tfm__cl_step(node);
    struct shape s;

    if (!measure(p->device, node, p->capacity, &s))
        return p->device->host->error(p->err, TFM_STATUS_UNSUPPORTED,
                                      "opencl: linear: the workspace is too large");
    step.vectors = tfm__cl_vectors(node->inputs[0]);
    step.width = (uint32_t)s.in;
    step.out = (uint32_t)s.out;
    step.scratch = (uint32_t)s.sums;
    tfm__cl_plan_workspace(p, s.scratch);
    const struct tfm__cl_launch vector = {vector_kernel(node->inputs[1]->dtype),
                                          step,
                                          5,
                                          {tfm__cl_operand_of(p, node->inputs[0], TFM__CL_RAW),
                                           tfm__cl_operand_of(p, node->inputs[1], TFM__CL_PANELS),
                                           tfm__cl_operand_of(p, bias, TFM__CL_RAW),
                                           tfm__cl_operand_of(p, node->outputs[0], TFM__CL_RAW),
                                           tfm__cl_operand_workspace(0)},
                                          (uint64_t)s.in * s.out};
    enum tfm_status status = tfm__cl_plan_launch(p, &vector);
    if (status == TFM_STATUS_OK && s.rows >= TFM__CL_GEMM_ROWS)
        status = plan_sizes(p, &s);
    if (status == TFM_STATUS_OK && s.rows >= TFM__CL_GEMM_ROWS)
        status = plan_gemm(p, node, &s, step);
    return status;
}

/* ---- run ---- */

static enum tfm_status run_gemm(struct tfm__cl_exec *e, const struct tfm__cl_node *node,
                                uint32_t rows, struct tfm_error *err)
{
    const size_t rows16 = ((size_t)rows + 15) & ~(size_t)15;
    enum tfm_status status = TFM_STATUS_OK;

    if (!node->turned)
        status = tfm__cl_launch(e, node->first + TURN, rows, err);
    for (uint32_t i = BLOCKS; i < node->count && status == TFM_STATUS_OK; i += 2) {
        const struct tfm_step *step = &e->program->launches[node->first + i].step;
        const size_t in16 = ((size_t)step->width + 15) & ~(size_t)15;
        status = tfm__cl_launch(e, node->first + i, 1, err);
        if (status == TFM_STATUS_OK)
            status = tfm__cl_gemm(e, (size_t)step->panels * TFM_PANEL, rows16, in16, err);
        if (status == TFM_STATUS_OK)
            status = tfm__cl_launch(e, node->first + i + 1, rows, err);
    }
    return status;
}

static enum tfm_status run(struct tfm__cl_exec *e, const struct tfm__cl_node *node,
                           const struct tfm_rows *rows, struct tfm_error *err)
{
    const struct tfm_step *step = &e->program->launches[node->first].step;
    const uint32_t n = (step->rows == TFM_STEP_OUT_ROWS ? rows->n_out : rows->n) * step->vectors;
    enum tfm_status status = TFM_STATUS_OK;

    if (n >= TFM__CL_GEMM_ROWS)
        return run_gemm(e, node, n, err);
    status = tfm__cl_launch(e, node->first + VECTOR, n, err);
    for (uint32_t i = TURN; i < node->count && rows->n == 0 && status == TFM_STATUS_OK; i++)
        status = tfm__cl_launch(e, node->first + i, 0, err);
    return status;
}

const struct tfm__cl_op tfm__cl_op_linear = {
    .supports = supports, .plan = plan, .run = run, .panels = 1u << 1, .alone = 1};
