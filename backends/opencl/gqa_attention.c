/* SPDX-License-Identifier: MIT
 * gqa_attention: the launch attend, or for a long context with few rows split, which is attend in parts
 * that are kept, and merge; both ways give the same bits. Before them append, if there are caches. The
 * kernels are in kernels/gqa_attention.cl, those of the group shape in kernels/gqa_attention_group.cl. */
#include <math.h>

#include "backends/opencl/internal.h"
#include "lib/core/checked.h"

enum { ATTEND, SPLIT, MERGE, APPEND, LAUNCHES };

/* Most rows of a run that are worth splitting their context. */
enum { SPLIT_ROWS = 8 };

/* Elements of the workspace's two parts. */
struct sizes {
    size_t wide;    /* d in whole vectors */
    size_t scratch; /* floats of a part */
    size_t splits;
    size_t scratch_bytes, partial_bytes; /* of all parts; of all partial results */
};

/* Beyond the plain causal kernels. */
static int is_general(const struct tfm_node *node)
{
    return node->attrs.bidirectional || node->attrs.window || node->attrs.softcap > 0 ||
           tfm__cl_input(node, 5);
}

static struct tfm__cl_kernel kernel(const struct tfm_node *node, const char *name)
{
    return (struct tfm__cl_kernel){"gqa_attention.cl", name,
                                   is_general(node) ? "-DTFM_ATTENTION_GENERAL=1" : NULL};
}

static int measure(const struct tfm__cl_device *d, const struct tfm_node *node,
                   const struct tfm_capacity *capacity, struct sizes *s)
{
    const size_t heads = (size_t)node->inputs[0]->shape[1], dim = (size_t)node->inputs[0]->shape[2];
    const size_t rows = capacity->rows < SPLIT_ROWS ? capacity->rows : SPLIT_ROWS;
    const size_t lanes = 16;
    size_t n;

    if (tfm__align_size(dim, lanes, &s->wide))
        return 0;
    const size_t cells =
        tfm__cl_input(node, 3) ? (size_t)node->inputs[3]->shape[1] : capacity->rows;
    s->splits = (cells + d->settings.split - 1) / d->settings.split;
    if (tfm__mul_size(s->wide, 3 * TFM__CL_ATTENTION_QUERIES + 2 * TFM__CL_ATTENTION_KEYS,
                      &s->scratch) ||
        tfm__add_size(s->scratch, TFM__CL_ATTENTION_QUERIES * TFM__CL_ATTENTION_KEYS,
                      &s->scratch) ||
        tfm__mul_size(s->scratch, d->parts * sizeof(float), &s->scratch_bytes) ||
        tfm__mul_size(heads, rows * s->splits, &n) || tfm__mul_size(n, s->wide + lanes, &n) ||
        tfm__mul_size(n, sizeof(float), &s->partial_bytes))
        return 0;
    return s->scratch <= UINT32_MAX && s->partial_bytes <= d->max_alloc;
}

static int supports(const struct tfm__cl_device *d, const struct tfm_node *node,
                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    struct sizes s;

    for (int i = 0; i < 3; i++) {
        if (node->inputs[i]->dtype != TFM_DTYPE_F32)
            return tfm__cl_refuse(reason, size, "q, k and v must be f32");
    }
    for (uint32_t i = 3; i < 5; i++) {
        const struct tfm_tensor *cache = tfm__cl_input(node, i);
        if (cache && cache->dtype != TFM_DTYPE_F32 && cache->dtype != TFM_DTYPE_F16)
            return tfm__cl_refuse(reason, size, "the caches must be f32 or f16");
    }
    if (tfm__cl_input(node, 5) && tfm__cl_input(node, 5)->dtype != TFM_DTYPE_F32)
        return tfm__cl_refuse(reason, size, "rel_bias must be f32");
    if (node->inputs[0]->extent != TFM_EXTENT_ROWS)
        return tfm__cl_refuse(reason, size, "q must have all rows of the run");
    if (!measure(d, node, capacity, &s))
        return tfm__cl_refuse(reason, size, "the workspace of d %lld and %lld cells is too large",
                              (long long)node->inputs[0]->shape[2],
                              (long long)(tfm__cl_input(node, 3) ? tfm__cl_input(node, 3)->shape[1]
                                                                 : capacity->rows));
    return 1;
}

/* The same launch in the group shape. */
static enum tfm_status plan_group(struct tfm__cl_planner *p, const struct tfm__cl_launch *wide,
                                  int which)
{
    static const char *const names[LAUNCHES] = {
        [ATTEND] = "tfm_run_gqa_attention_group",
        [SPLIT] = "tfm_run_gqa_attention_group",
        [MERGE] = "tfm_run_gqa_attention_group_merge",
        [APPEND] = "tfm_run_gqa_attention_group_append",
    };
    struct tfm__cl_launch launch = *wide;

    launch.kernel.file = "gqa_attention_group.cl";
    launch.kernel.name = names[which];
    return tfm__cl_plan_group(p, &launch, p->device->settings.split, 1);
}

static enum tfm_status plan(struct tfm__cl_planner *p, const struct tfm_node *node)
{
    const struct tfm_tensor *q = node->inputs[0], *k = node->inputs[1],
                            *cache = tfm__cl_input(node, 3);
    const double scale = node->attrs.scale;
    struct tfm_step step = tfm__cl_step(node);
    struct sizes s;

    if (!measure(p->device, node, p->capacity, &s))
        return p->device->host->error(p->err, TFM_STATUS_UNSUPPORTED,
                                      "opencl: gqa_attention: the workspace is too large");
    step.heads = (uint32_t)q->shape[1];
    step.kv_heads = (uint32_t)k->shape[1];
    step.head_dim = (uint32_t)q->shape[2];
    step.slots = cache ? (uint32_t)cache->shape[0] : 0;
    step.cells = cache ? (uint32_t)cache->shape[1] : 0;
    step.bidirectional = node->attrs.bidirectional != 0;
    step.window = (uint32_t)node->attrs.window;
    step.softcap = (float)node->attrs.softcap;
    step.span = tfm__cl_input(node, 6) ? (uint32_t)(tfm__cl_input(node, 6)->shape[0] / 2) : 0;
    step.splits = (uint32_t)s.splits;
    step.scratch = (uint32_t)s.scratch;
    step.scale = (float)(scale != 0 ? scale : 1.0 / sqrt((double)q->shape[2]));
    tfm__cl_plan_workspace(p, s.scratch_bytes + s.partial_bytes);

    const struct tfm__cl_operand query = tfm__cl_operand_of(p, q, TFM__CL_RAW);
    const struct tfm__cl_operand key = tfm__cl_operand_of(p, k, TFM__CL_RAW);
    const struct tfm__cl_operand value = tfm__cl_operand_of(p, node->inputs[2], TFM__CL_RAW);
    const struct tfm__cl_operand k_cache = cache ? tfm__cl_operand_of(p, cache, TFM__CL_RAW) : key;
    const struct tfm__cl_operand v_cache =
        cache ? tfm__cl_operand_of(p, node->inputs[4], TFM__CL_RAW) : value;
    const struct tfm__cl_operand bias = tfm__cl_operand_of(p, tfm__cl_input(node, 5), TFM__CL_RAW);
    const struct tfm__cl_operand bucket =
        tfm__cl_operand_of(p, tfm__cl_input(node, 6), TFM__CL_RAW);
    const struct tfm__cl_operand y = tfm__cl_operand_of(p, node->outputs[0], TFM__CL_RAW);
    const struct tfm__cl_operand lse =
        tfm__cl_operand_of(p, node->n_outputs > 1 ? node->outputs[1] : NULL, TFM__CL_RAW);
    const struct tfm__cl_operand scratch = tfm__cl_operand_workspace(0);
    const struct tfm__cl_operand partial = tfm__cl_operand_workspace(s.scratch_bytes);
    const uint64_t row = (uint64_t)tfm_tensor_row_elements(q);
    struct tfm_step keeping = step;
    keeping.split = 1;
    const struct tfm__cl_launch launches[LAUNCHES] = {
        [ATTEND] = {kernel(node, "tfm_run_gqa_attention_attend"),
                    step,
                    8,
                    {query, y, k_cache, v_cache, scratch, bias, bucket, lse},
                    row},
        [SPLIT] = {kernel(node, "tfm_run_gqa_attention_attend"),
                   keeping,
                   8,
                   {query, partial, k_cache, v_cache, scratch, bias, bucket, lse},
                   row},
        [MERGE] =
            {kernel(node, "tfm_run_gqa_attention_merge"), step, 3, {partial, y, scratch}, row},
        [APPEND] = {kernel(node, "tfm_run_gqa_attention_append"),
                    step,
                    4,
                    {key, value, k_cache, v_cache},
                    2 * (uint64_t)tfm_tensor_row_elements(k)},
    };
    enum tfm_status status = TFM_STATUS_OK;

    for (int i = 0; i < (cache ? LAUNCHES : APPEND) && status == TFM_STATUS_OK; i++)
        status = p->device->settings.shape == TFM__CL_GROUP ? plan_group(p, &launches[i], i)
                                                            : tfm__cl_plan_launch(p, &launches[i]);
    return status;
}

/* Cells of the longest sequence, and rows times cells of all (what the work grows with). */
static uint64_t longest(const struct tfm_rows *rows, uint64_t *work)
{
    uint64_t most = 0;

    *work = 0;
    for (uint32_t s = 0; s < rows->n_seq; s++) {
        const uint64_t end = s + 1 < rows->n_seq ? (uint64_t)rows->start[s + 1] : rows->n;
        const uint64_t n = end - (uint64_t)rows->start[s], cells = (uint64_t)rows->past[s] + n;
        *work += n * cells;
        most = cells > most ? cells : most;
    }
    return most;
}

static enum tfm_status run(struct tfm__cl_exec *e, const struct tfm__cl_node *node,
                           const struct tfm_rows *rows, struct tfm_error *err)
{
    uint64_t work;
    const uint64_t cells = longest(rows, &work);
    const int split = rows->n <= SPLIT_ROWS && cells > e->device->settings.split &&
                      node->node->n_outputs < 2; /* merge makes no lse */
    const int all = rows->n == 0;
    enum tfm_status status = TFM_STATUS_OK;

    if (node->count == LAUNCHES)
        status = tfm__cl_launch(e, node->first + APPEND, rows->n, err);
    if (status == TFM_STATUS_OK && (all || !split))
        status = tfm__cl_launch(e, node->first + ATTEND, work, err);
    if (status == TFM_STATUS_OK && (all || split))
        status = tfm__cl_launch(e, node->first + SPLIT, work, err);
    if (status == TFM_STATUS_OK && (all || split))
        status = tfm__cl_launch(e, node->first + MERGE, rows->n, err);
    return status;
}

const struct tfm__cl_op tfm__cl_op_gqa_attention = {
    .supports = supports, .plan = plan, .run = run, .alone = 1};
