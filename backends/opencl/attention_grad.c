/* SPDX-License-Identifier: MIT
 * attention_grad: a launch over queries, then one over cells (kernels/attention_grad.cl, attention_grad_group.cl);
 * with a relative bias one before them that lays it out by distance, and one behind them that adds up its gradient
 * (attention_grad_units.cl). */
#include <math.h>

#include "backends/opencl/internal.h"
#include "lib/core/checked.h"

/* Tiles of the two shapes, as in the kernels. ALIGN: floats that parts of the workspace begin at multiples of. */
enum { TILE = 64, WIDTH = 32, GROUP_TILE = 32, ALIGN = 32 };
/* Local memory of a group: x, y, s, p, base and delta. */
enum {
    GROUP_FLOATS = 2 * GROUP_TILE * (GROUP_TILE + 1) + 2 * GROUP_TILE * GROUP_TILE + 2 * GROUP_TILE
};

/* The parts of the workspace, in floats; 0 = there is none. */
struct parts {
    size_t scratch, stats_at, bias_at, partial_at, all;
};

/* Appends n floats to the workspace; 1 on overflow. */
static int put(struct parts *w, size_t n, size_t *at)
{
    *at = w->all;
    return tfm__align_size(n, ALIGN, &n) || tfm__add_size(w->all, n, &w->all);
}

static int measure(const struct tfm__cl_device *d, const struct tfm_node *node,
                   const struct tfm_capacity *capacity, struct parts *w)
{
    const size_t heads = (size_t)node->inputs[0]->shape[1];
    const size_t dim = (size_t)node->inputs[0]->shape[2], rows = capacity->rows;
    const struct tfm_tensor *bucket = tfm__cl_input(node, 6);
    const size_t distances = bucket ? (size_t)bucket->shape[0] : 0;
    const int group = d->settings.shape == TFM__CL_GROUP;
    /* units of cells of a kv head times the heads that read it: H for each tile of each sequence */
    const size_t tiles = rows / (group ? GROUP_TILE : TILE) + capacity->sequences;
    size_t n, unused, bytes;

    *w = (struct parts){.scratch = group ? 2 * GROUP_TILE * dim
                                         : 4 * TILE * dim + 2 * TILE * TILE +
                                               WIDTH * (dim > TILE ? dim : TILE)};
    if (tfm__align_size(w->scratch, ALIGN, &w->scratch) ||
        tfm__mul_size(w->scratch, d->parts, &n) || put(w, n, &unused) ||
        tfm__mul_size(rows, 2 * heads, &n) || put(w, n, &w->stats_at))
        return 0;
    if (bucket && (tfm__mul_size(distances, heads, &n) || put(w, n, &w->bias_at)))
        return 0;
    if (tfm__cl_input(node, 7) && (tfm__mul_size(n, tiles, &n) || put(w, n, &w->partial_at)))
        return 0;
    return w->all <= UINT32_MAX && !tfm__mul_size(w->all, sizeof(float), &bytes) &&
           (!d->max_alloc || bytes <= d->max_alloc);
}

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    struct parts w;

    if (!measure(d, node, capacity, &w))
        return tfm__cl_refuse(reason, size, "the workspace of %u rows does not fit a buffer",
                              capacity->rows);
    return 1;
}

/* The launches of a node in this order; those of the bias are written once for both shapes. */
enum { GATHER, ROWS, CELLS, BIAS, LAUNCHES };

/* distances: 1 = the bias has a gradient. */
static enum tfm_status append(struct tfm__cl_planner *p, int which, int distances,
                              struct tfm__cl_launch launch)
{
    static const char *const names[LAUNCHES][2] = {
        [GATHER] = {"tfm_run_attention_grad_gather", "tfm_run_attention_grad_gather"},
        [ROWS] = {"tfm_run_attention_grad_rows", "tfm_run_attention_grad_rows_group"},
        [CELLS] = {"tfm_run_attention_grad_cells", "tfm_run_attention_grad_cells_group"},
        [BIAS] = {"tfm_run_attention_grad_bias", "tfm_run_attention_grad_bias"},
    };
    const int group = p->device->settings.shape == TFM__CL_GROUP;

    launch.kernel = (struct tfm__cl_kernel){
        group ? "attention_grad_group.cl" : "attention_grad.cl", names[which][group],
        group && distances ? "-DTFM_ATTENTION_GRAD_DISTANCES=1" : NULL};
    launch.operands[launch.n_operands++] = tfm__cl_operand_workspace(0);
    return group && (which == ROWS || which == CELLS)
               ? tfm__cl_plan_group(p, &launch, GROUP_FLOATS, 0)
               : tfm__cl_plan_each(p, &launch);
}

static struct tfm_step step_of(const struct tfm_node *node, const struct parts *w)
{
    const struct tfm_tensor *q = node->inputs[0], *k = node->inputs[1];
    const struct tfm_tensor *bias = tfm__cl_input(node, 5), *bucket = tfm__cl_input(node, 6);
    struct tfm_step step = tfm__cl_step(node);

    step.heads = (uint32_t)q->shape[1];
    step.kv_heads = (uint32_t)k->shape[1];
    step.head_dim = (uint32_t)q->shape[2];
    step.bidirectional = node->attrs.bidirectional != 0;
    step.window = (uint32_t)node->attrs.window;
    step.softcap = (float)node->attrs.softcap;
    step.scale =
        (float)(node->attrs.scale != 0 ? node->attrs.scale : 1.0 / sqrt((double)q->shape[2]));
    step.span = bucket ? (uint32_t)(bucket->shape[0] / 2) : 0;
    step.out = bias ? (uint32_t)bias->shape[0] : 0;
    step.scratch = (uint32_t)w->scratch;
    step.stats_at = (uint32_t)w->stats_at;
    step.bias_at = (uint32_t)w->bias_at;
    step.partial_at = (uint32_t)w->partial_at;
    return step;
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    struct tfm__cl_operand in[8], out[4];
    struct parts w;

    if (!measure(p->device, node, p->capacity, &w))
        return p->device->host->error(p->err, TFM_STATUS_UNSUPPORTED,
                                      "opencl: attention_grad: the workspace is too large");
    tfm__cl_plan_workspace(p, w.all * sizeof(float));
    for (uint32_t i = 0; i < 8; i++)
        in[i] = tfm__cl_operand_of(p, tfm__cl_input(node, i), TFM__CL_RAW);
    for (uint32_t i = 0; i < 4; i++)
        out[i] = tfm__cl_operand_of(p, node->outputs[i], TFM__CL_RAW);
    const struct tfm_step step = step_of(node, &w);
    const uint64_t cell = (uint64_t)step.heads * step.head_dim; /* of a row and a cell */
    const int distances = w.partial_at > 0;
    enum tfm_status status = TFM_STATUS_OK;

    if (w.bias_at)
        status = append(
            p, GATHER, distances,
            (struct tfm__cl_launch){.step = step, .n_operands = 2, .operands = {in[5], in[6]}});
    if (status == TFM_STATUS_OK)
        status = append(
            p, ROWS, distances,
            (struct tfm__cl_launch){.step = step,
                                    .n_operands = 7,
                                    .operands = {in[0], in[1], in[2], in[3], in[4], out[0], out[3]},
                                    .cost = 4 * cell});
    if (status == TFM_STATUS_OK)
        status =
            append(p, CELLS, distances,
                   (struct tfm__cl_launch){.step = step,
                                           .n_operands = 6,
                                           .operands = {in[0], in[1], in[2], in[3], out[1], out[2]},
                                           .cost = 4 * cell});
    if (status == TFM_STATUS_OK && w.partial_at)
        status = append(
            p, BIAS, distances,
            (struct tfm__cl_launch){.step = step, .n_operands = 2, .operands = {in[6], in[7]}});
    return status;
}

/* Rows times the cells of their sequence: what the work grows with. */
static enum tfm_status run(struct tfm__cl_exec *e, const struct tfm__cl_node *node,
                           const struct tfm_rows *rows, struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;
    uint64_t work = 0;

    for (uint32_t s = 0; s < rows->n_seq; s++) {
        const uint64_t end = s + 1 < rows->n_seq ? (uint64_t)rows->start[s + 1] : rows->n;
        const uint64_t n = end - (uint64_t)rows->start[s];
        work += n * n;
    }
    for (uint32_t i = 0; i < node->count && status == TFM_STATUS_OK; i++)
        status = tfm__cl_launch(e, node->first + i, work, err);
    return status;
}

const struct tfm__cl_op tfm__cl_op_attention_grad = {
    .supports = supports, .plan = plan, .run = run, .alone = 1};
