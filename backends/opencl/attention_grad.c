/* SPDX-License-Identifier: MIT
 * attention_grad (kernels/attention_grad.cl, attention_grad_group.cl): a launch for all sums at once, or one for those
 * of rows, then one for those of cells; both ways give the same bits. With a relative bias one before them that lays
 * it out by distance, and one behind them that adds up its gradient (attention_grad_units.cl). */
#include <math.h>

#include "backends/opencl/internal.h"
#include "lib/core/checked.h"

/* Tiles of the wide shape, of narrow devices and of the group shape, as in the kernels. KEPT: most cells whose weights
 * a part keeps. VECTORS: of those of a tile, how many a part has in its scratch. ALIGN: floats that parts of the
 * workspace begin at multiples of. */
enum { TILE = 64, WIDTH = 32, KEPT = 1024, NARROW_TILE = 32, GROUP_TILE = 32, ALIGN = 32 };
enum { VECTORS = 6 };
/* Local memory of a group: x, y, s, p, base and delta. */
enum {
    GROUP_FLOATS = 2 * GROUP_TILE * (GROUP_TILE + 1) + 2 * GROUP_TILE * GROUP_TILE + 2 * GROUP_TILE
};

/* The parts of the workspace, in floats; 0 = there is none. */
struct parts {
    size_t kept, scratch, bias_at, partial_at, all;
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
    const size_t tile = group ? GROUP_TILE : d->settings.narrow ? NARROW_TILE : TILE;
    /* units of cells of a kv head times the heads that read it: H for each tile of each sequence */
    const size_t tiles = rows / tile + capacity->sequences;
    const size_t strips = node->attrs.softcap > 0 ? 3 : 2, wide = (dim + WIDTH - 1) / WIDTH * WIDTH;
    size_t n, unused, bytes;

    *w = (struct parts){.kept = rows < KEPT ? (rows + tile - 1) / tile * tile : KEPT};
    w->scratch = group ? 2 * tile * dim : (VECTORS * wide + strips * w->kept) * tile;
    if (tfm__align_size(w->scratch, ALIGN, &w->scratch) ||
        tfm__mul_size(w->scratch, d->parts, &n) || put(w, n, &unused))
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

/* The launches of a node in this order; those of the bias are written once for both shapes. The group shape has no
 * BOTH, nor has a narrow device: it would do too much in one work-item. */
enum { GATHER, ROWS, CELLS, BOTH, BIAS, LAUNCHES };

/* The last of those that make sums. */
static int last_of(const struct tfm__cl_device *d)
{
    return d->settings.shape == TFM__CL_GROUP || d->settings.narrow ? CELLS : BOTH;
}

/* distances: 1 = the bias has a gradient. */
static enum tfm_status append(struct tfm__cl_planner *p, int which, int distances,
                              struct tfm__cl_launch launch)
{
    static const struct {
        const char *wide, *group;
        uint32_t sums;
    } kinds[LAUNCHES] = {
        [GATHER] = {"tfm_run_attention_grad_gather", "tfm_run_attention_grad_gather", 0},
        [ROWS] = {"tfm_run_attention_grad", "tfm_run_attention_grad_rows_group", TFM_SUMS_ROWS},
        [CELLS] = {"tfm_run_attention_grad", "tfm_run_attention_grad_cells_group", TFM_SUMS_CELLS},
        [BOTH] = {"tfm_run_attention_grad", NULL, TFM_SUMS_ROWS | TFM_SUMS_CELLS},
        [BIAS] = {"tfm_run_attention_grad_bias", "tfm_run_attention_grad_bias", 0},
    };
    const int group = p->device->settings.shape == TFM__CL_GROUP;

    launch.kernel =
        (struct tfm__cl_kernel){group ? "attention_grad_group.cl" : "attention_grad.cl",
                                group ? kinds[which].group : kinds[which].wide,
                                group && distances ? "-DTFM_ATTENTION_GRAD_DISTANCES=1" : NULL};
    launch.step.sums = kinds[which].sums;
    launch.operands[launch.n_operands++] = tfm__cl_operand_workspace(0);
    return group && launch.step.sums ? tfm__cl_plan_group(p, &launch, GROUP_FLOATS, 0)
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
    step.kept = (uint32_t)w->kept;
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
    const struct tfm__cl_launch sums = {
        .step = step,
        .n_operands = 9,
        .operands = {in[0], in[1], in[2], in[3], in[4], out[0], out[3], out[1], out[2]},
        .cost = 4 * (uint64_t)step.heads * step.head_dim, /* of a row and a cell */
    };
    const int distances = w.partial_at > 0;
    enum tfm_status status = TFM_STATUS_OK;

    if (w.bias_at)
        status = append(
            p, GATHER, distances,
            (struct tfm__cl_launch){.step = step, .n_operands = 2, .operands = {in[5], in[6]}});
    for (int which = ROWS; which <= last_of(p->device) && status == TFM_STATUS_OK; which++)
        status = append(p, which, distances, sums);
    if (status == TFM_STATUS_OK && w.partial_at)
        status = append(
            p, BIAS, distances,
            (struct tfm__cl_launch){.step = step, .n_operands = 2, .operands = {in[6], in[7]}});
    return status;
}

/* What the launches of a run are chosen by. */
struct work {
    uint64_t all, most; /* rows times cells of their sequence, and those of the longest */
    uint64_t sequences; /* that have rows */
};

static struct work measure_rows(const struct tfm_rows *rows)
{
    struct work w = {0};

    for (uint32_t s = 0; s < rows->n_seq; s++) {
        const uint64_t end = s + 1 < rows->n_seq ? (uint64_t)rows->start[s + 1] : rows->n;
        const uint64_t n = end - (uint64_t)rows->start[s];
        w.all += n * n;
        w.most = n * n > w.most ? n * n : w.most;
        w.sequences += n > 0;
    }
    return w;
}

/* 1 = all sums at once: five products instead of seven, but a sequence and kv head stays with one part, and the parts
 * may have unequal shares. */
static int at_once(const struct tfm__cl_device *d, const struct work *w, uint64_t kv_heads)
{
    const uint64_t shares = (w->sequences * kv_heads + d->parts - 1) / d->parts; /* of a part */

    return 5 * shares * w->most * d->parts <= 7 * w->all * kv_heads;
}

static enum tfm_status run(struct tfm__cl_exec *e, const struct tfm__cl_node *node,
                           const struct tfm_rows *rows, struct tfm_error *err)
{
    const int gather = tfm__cl_input(node->node, 5) != NULL, last = last_of(e->device);
    const struct work work = measure_rows(rows);
    const int both =
        last == BOTH && at_once(e->device, &work, (uint64_t)node->node->inputs[1]->shape[1]);
    enum tfm_status status = TFM_STATUS_OK;

    for (uint32_t i = 0; i < node->count && status == TFM_STATUS_OK; i++) {
        const int which = (int)i + (gather ? GATHER : ROWS);
        const int skipped = which <= last && (which == BOTH ? !both : which != GATHER && both);
        if (!skipped || rows->n == 0) /* which warms everything */
            status = tfm__cl_launch(e, node->first + i, work.all, err);
    }
    return status;
}

const struct tfm__cl_op tfm__cl_op_attention_grad = {
    .supports = supports, .plan = plan, .run = run, .alone = 1};
