/* SPDX-License-Identifier: MIT
 * linear: for few rows the matrix-vector kernel of the weight's type (kernels/linear.cl), for many our own
 * matrix product (kernels/linear_panels.cl), CLBlast's (linear_gemm.c), or integers for both (linear_int8.c), as
 * the device's settings say; with a trainable weight linear_rows.c. Our own are kernels/linear_group.cl and
 * linear_group_tile.cl in the group shape. */
#include "backends/opencl/internal.h"
#include "lib/core/checked.h"

enum { VECTOR, MANY }; /* launches: MANY and those behind it for many rows */

/* The matrix-vector kernel is a program for each type of weight. */
static struct tfm__cl_kernel vector_kernel(const struct tfm__cl_device *d, enum tfm_dtype dtype)
{
    static const char *const options[TFM_DTYPE_COUNT] = {
#define TFM_DTYPE(id, NAME, name, block, bytes, class, minor) \
    [TFM_DTYPE_##NAME] = "-DTFM_LINEAR_TYPE=" #id,
#include <tfm/dtypes.def>
#undef TFM_DTYPE
    };

    if (d->settings.shape == TFM__CL_WIDE && !d->settings.narrow &&
        tfm__cl_linear_int8_takes(d, dtype))
        return (struct tfm__cl_kernel){"linear_int8_few.cl", "tfm_run_linear_int8_few",
                                       d->settings.int8};
    return (struct tfm__cl_kernel){"linear.cl", "tfm_run_linear", options[dtype]};
}

/* The launches of the group shape have the operands and the options of `vector`. */
static enum tfm_status plan_group(struct tfm__cl_planner *p, const struct tfm__cl_launch *vector,
                                  int many)
{
    struct tfm__cl_launch launch = *vector;

    launch.kernel.file = many ? "linear_group_tile.cl" : "linear_group.cl";
    launch.kernel.name = many ? "tfm_run_linear_group_tile" : "tfm_run_linear_group";
    return many ? tfm__cl_plan_group(p, &launch, TFM__CL_TILE_FLOATS, 0)
                : tfm__cl_plan_group(p, &launch, 0, TFM__CL_LINEAR_GROUP_ROWS);
}

/* How many rows are multiplied. */
enum way { OWN, CLBLAST, INT8 };

static enum way way_of(const struct tfm__cl_device *d, enum tfm_dtype weight)
{
    return tfm__cl_linear_int8_takes(d, weight)       ? INT8
           : d->settings.gemm == TFM__CL_GEMM_CLBLAST ? CLBLAST
                                                      : OWN;
}

/* Rows from which a linear is a matrix product. */
static size_t many_rows(enum way way)
{
    static const size_t rows[] = {
        [OWN] = TFM__CL_PANELS_ROWS, [CLBLAST] = TFM__CL_GEMM_ROWS, [INT8] = TFM__CL_INT8_ROWS};

    return rows[way];
}

/* Vectors that the linear acts on; supports() has seen that they fit 31 bits. */
static uint32_t capacity_rows(const struct tfm_node *node, const struct tfm_capacity *capacity)
{
    const uint32_t rows = (uint32_t)tfm_tensor_rows_most(node->outputs[0], capacity);
    return rows * tfm__cl_vectors(node->inputs[0]);
}

/* Workspace of the matrix-vector kernel: floats of a part, bytes of all parts. */
struct scratch {
    size_t sums, bytes;
};

/* 0 on overflow, or when a buffer cannot hold the workspace. */
static int measure(const struct tfm__cl_device *d, const struct tfm_node *node,
                   const struct tfm_capacity *capacity, struct tfm__cl_linear *l, struct scratch *s)
{
    l->in = (size_t)node->inputs[1]->shape[1];
    l->out = (size_t)node->inputs[1]->shape[0];
    l->rows = capacity_rows(node, capacity);
    tfm__cl_int8_settle(d); /* it decides how few rows are multiplied, too */
    const enum way way = way_of(d, node->inputs[1]->dtype);
    const size_t few = many_rows(way) - 1;
    const size_t rows = l->rows < few ? l->rows : few;

    s->sums =
        way == INT8 ? tfm__cl_linear_int8_few_floats(l->in, rows) : (l->in / TFM_BLOCK + 1) * rows;
    if (tfm__mul_size(s->sums, d->parts * sizeof(float), &s->bytes) || s->sums > UINT32_MAX)
        return 0;
    return l->rows <= few || way == OWN ||
           (way == INT8 ? tfm__cl_linear_int8_fits(d, l) : tfm__cl_linear_gemm_fits(d, l));
}

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    const struct tfm_tensor *x = node->inputs[0], *weight = node->inputs[1];
    const struct tfm_tensor *bias = node->n_inputs > 2 ? node->inputs[2] : NULL;
    const struct tfm_dtype_info *info = d->host->dtype_info(weight->dtype);
    struct tfm__cl_linear l;
    struct scratch s;

    if (x->dtype != TFM_DTYPE_F32)
        return tfm__cl_refuse(reason, size, "x must be f32");
    if (!tfm__cl_vectors_fit(x, capacity, reason, size))
        return 0;
    if (bias && !tfm__cl_is_activation(d, bias, reason, size))
        return 0;
    if (tfm__cl_is_trainable(d, weight))
        return tfm__cl_linear_rows_supports(d, node, capacity, reason, size);
    if (tfm__cl_panel_bytes(weight->dtype, (size_t)weight->shape[1]) == 0)
        return tfm__cl_refuse(reason, size, "no kernel for a weight of %s with rows of %lld",
                              info ? info->name : "?", (long long)weight->shape[1]);
    if (!measure(d, node, capacity, &l, &s))
        return tfm__cl_refuse(reason, size,
                              "%u rows of %lld need more workspace than a buffer holds",
                              capacity_rows(node, capacity), (long long)weight->shape[1]);
    return 1;
}

/* The launches for many rows; `vector` is the one for few. */
static enum tfm_status plan_many(struct tfm__cl_planner *p, const struct tfm_node *node,
                                 const struct tfm__cl_linear *l,
                                 const struct tfm__cl_launch *vector)
{
    const enum way way = way_of(p->device, node->inputs[1]->dtype);
    struct tfm__cl_node *made = &p->program->nodes[p->program->n_nodes];

    /* what the node before has left serves this one only if it went the same way */
    if (made->turned) {
        const struct tfm_tensor *before = p->segment->nodes[p->program->n_nodes - 1]->inputs[1];
        made->turned =
            way_of(p->device, before->dtype) == way && !tfm__cl_is_trainable(p->device, before);
    }
    if (way == INT8)
        return tfm__cl_linear_int8_plan(p, l, vector);
    if (way == CLBLAST)
        return tfm__cl_linear_gemm_plan(p, node, l, vector->step);
    return p->device->settings.shape == TFM__CL_GROUP ? plan_group(p, vector, 1)
                                                      : tfm__cl_linear_panels_plan(p, vector);
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    const struct tfm_tensor *bias = node->n_inputs > 2 ? node->inputs[2] : NULL;
    struct tfm_step step = tfm__cl_step(node);
    struct tfm__cl_linear l;
    struct scratch s;

    if (tfm__cl_is_trainable(p->device, node->inputs[1]))
        return tfm__cl_linear_rows_plan(p, node);
    if (!measure(p->device, node, p->capacity, &l, &s))
        return p->device->host->error(p->err, TFM_STATUS_UNSUPPORTED,
                                      "opencl: linear: the workspace is too large");
    step.vectors = tfm__cl_vectors(node->inputs[0]);
    step.width = (uint32_t)l.in;
    step.out = (uint32_t)l.out;
    step.scratch = (uint32_t)s.sums;
    tfm__cl_plan_workspace(p, s.bytes);
    const struct tfm__cl_launch vector = {vector_kernel(p->device, node->inputs[1]->dtype),
                                          step,
                                          5,
                                          {tfm__cl_operand_of(p, node->inputs[0], TFM__CL_RAW),
                                           tfm__cl_operand_of(p, node->inputs[1], TFM__CL_PANELS),
                                           tfm__cl_operand_of(p, bias, TFM__CL_RAW),
                                           tfm__cl_operand_of(p, node->outputs[0], TFM__CL_RAW),
                                           tfm__cl_operand_workspace(0)},
                                          (uint64_t)l.in * l.out};
    const int grouped = p->device->settings.shape == TFM__CL_GROUP;
    const enum tfm_status status =
        grouped ? plan_group(p, &vector, 0) : tfm__cl_plan_launch(p, &vector);
    const enum way way = way_of(p->device, node->inputs[1]->dtype);
    return status == TFM_STATUS_OK && l.rows >= many_rows(way) ? plan_many(p, node, &l, &vector)
                                                               : status;
}

static enum tfm_status run(struct tfm__cl_exec *e, const struct tfm__cl_node *node,
                           const struct tfm_rows *rows, struct tfm_error *err)
{
    const struct tfm_step *step = &e->program->launches[node->first].step;
    const uint32_t n = (step->rows == TFM_STEP_OUT_ROWS ? rows->n_out : rows->n) * step->vectors;
    const enum way way =
        way_of(e->device, (enum tfm_dtype)e->program->launches[node->first].operands[1].type);
    enum tfm_status status = TFM_STATUS_OK;

    if (tfm__cl_is_trainable(e->device, node->node->inputs[1])) {
        for (uint32_t i = 0; i < node->count && status == TFM_STATUS_OK; i++)
            status = tfm__cl_launch(e, node->first + i, n ? n / step->vectors : 0, err);
        return status;
    }
    if (n >= many_rows(way)) {
        const uint32_t first = node->first + MANY;
        return way == INT8  ? tfm__cl_linear_int8_run(e, node, first, n, err)
               : way == OWN ? tfm__cl_launch(e, first, n, err)
                            : tfm__cl_linear_gemm_run(e, node, first, n, err);
    }
    status = tfm__cl_launch(e, node->first + VECTOR, n, err);
    for (uint32_t i = MANY; i < node->count && rows->n == 0 && status == TFM_STATUS_OK; i++)
        status = tfm__cl_launch(e, node->first + i, 0, err);
    return status;
}

const struct tfm__cl_op tfm__cl_op_linear = {.supports = supports,
                                             .plan = plan,
                                             .run = run,
                                             .panels = 1u << 1,
                                             .trains = 1u << 1,
                                             .alone = 1};
