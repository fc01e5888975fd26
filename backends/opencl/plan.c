/* SPDX-License-Identifier: MIT
 * Compile: weights into the pool, nodes into launches. A program is immutable and shared by threads. */
#include <stdio.h>
#include <string.h>

#include "backends/opencl/internal.h"
#include "lib/core/checked.h"

static enum tfm_status no_memory(const struct tfm_host *host, struct tfm_error *err)
{
    return host->error(err, TFM_STATUS_NOMEM, "opencl: out of memory for a program");
}

static int is_constant(const struct tfm__cl_device *d, const struct tfm_tensor *tensor)
{
    const struct tfm_tensor *root = tensor->view_of ? tensor->view_of : tensor;
    return (root->kind == TFM_TENSOR_PARAMETER || root->kind == TFM_TENSOR_BUFFER) &&
           !tfm__cl_is_trainable(d, root);
}

/* ---- for the ops ---- */

struct tfm__cl_operand tfm__cl_operand_of(const struct tfm__cl_planner *planner,
                                          const struct tfm_tensor *tensor, enum tfm__cl_form form)
{
    struct tfm__cl_operand o = {.place = TFM__CL_ABSENT, .type = TFM_STEP_NONE};

    if (!tensor)
        return o;
    o.type = (uint32_t)tensor->dtype;
    if (is_constant(planner->device, tensor)) {
        const struct tfm_memory memory = tfm__cl_pool_find(planner->pool, tensor, form);
        o.place = TFM__CL_POOL;
        o.pool = memory.buffer;
        o.offset = memory.offset;
    } else {
        o.place = TFM__CL_MEMORY;
        o.tensor = (uint32_t)planner->segment->index[tensor->id];
    }
    return o;
}

struct tfm__cl_operand tfm__cl_operand_workspace(size_t offset)
{
    return (struct tfm__cl_operand){
        .place = TFM__CL_WORKSPACE, .type = TFM_STEP_F32, .offset = offset};
}

/* Of what a node's rows are: those of its first output, else of its first input that has any. */
static enum tfm_extent extent_of(const struct tfm_node *node)
{
    if (node->n_outputs)
        return node->outputs[0]->extent;
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (node->inputs[i] && node->inputs[i]->extent != TFM_EXTENT_FIXED)
            return node->inputs[i]->extent;
    }
    return TFM_EXTENT_FIXED;
}

struct tfm_step tfm__cl_step(const struct tfm_node *node)
{
    return (struct tfm_step){
        .op = (uint32_t)node->op,
        .vectors = 1,
        .rows = extent_of(node) == TFM_EXTENT_OUT_ROWS ? TFM_STEP_OUT_ROWS : TFM_STEP_ALL_ROWS,
    };
}

enum tfm_status tfm__cl_plan_launch(struct tfm__cl_planner *planner,
                                    const struct tfm__cl_launch *launch)
{
    struct tfm__cl_program *p = planner->program;
    const struct tfm_host *host = planner->device->host;

    if (p->n_launches == p->room) {
        const uint32_t room = p->room ? 2 * p->room : 64;
        struct tfm__cl_launch *more = host->alloc(room * sizeof *more);
        if (!more)
            return no_memory(host, planner->err);
        if (p->n_launches)
            memcpy(more, p->launches, p->n_launches * sizeof *more);
        host->free(p->launches);
        p->launches = more;
        p->room = room;
    }
    p->launches[p->n_launches++] = *launch;
    return TFM_STATUS_OK;
}

void tfm__cl_plan_workspace(struct tfm__cl_planner *planner, size_t bytes)
{
    if (bytes > planner->program->workspace)
        planner->program->workspace = bytes;
}

/* ---- compile ---- */

static enum tfm_status take_weights(struct tfm__cl_device *d, struct tfm_weights *weights,
                                    const struct tfm_segment *segment, struct tfm__cl_pool **pool,
                                    struct tfm_error *err)
{
    size_t n = 0, bytes;

    if (tfm__mul_size(segment->n_nodes, TFM_MAX_INPUTS * sizeof(struct tfm__cl_need), &bytes))
        return no_memory(d->host, err);
    struct tfm__cl_need *needs = d->host->alloc(bytes ? bytes : 1);
    if (!needs)
        return no_memory(d->host, err);
    for (uint32_t i = 0; i < segment->n_nodes; i++) {
        const struct tfm_node *node = segment->nodes[i];
        const uint32_t panels = tfm__cl_op(node->op)->panels;
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            if (node->inputs[k] && is_constant(d, node->inputs[k]))
                needs[n++] = (struct tfm__cl_need){node->inputs[k],
                                                   panels >> k & 1 ? TFM__CL_PANELS : TFM__CL_RAW};
        }
    }
    const enum tfm_status status = tfm__cl_pool_take(d, weights, needs, n, pool, err);
    d->host->free(needs);
    return status;
}

static void destroy(struct tfm__cl_program *p)
{
    const struct tfm_host *host = p->device->host;

    host->free(p->phases.steps);
    host->free(p->launches);
    host->free(p->nodes);
    host->free(p);
}

static enum tfm_status plan_nodes(struct tfm__cl_planner *planner)
{
    struct tfm__cl_program *p = planner->program;
    const struct tfm_segment *segment = planner->segment;

    for (uint32_t i = 0; i < segment->n_nodes; i++) {
        const struct tfm_node *node = segment->nodes[i];
        struct tfm__cl_node *made = &p->nodes[i];
        made->op = tfm__cl_op(node->op);
        made->node = node;
        made->first = p->n_launches;
        made->turned = i > 0 && node->op == segment->nodes[i - 1]->op &&
                       node->inputs[0] == segment->nodes[i - 1]->inputs[0];
        const enum tfm_status status = made->op->plan(planner, node);
        if (status != TFM_STATUS_OK)
            return status;
        made->count = p->n_launches - made->first;
        p->n_nodes++;
    }
    return TFM_STATUS_OK;
}

/* Weights that are trained lie otherwise than phases read them. */
static int trains(const struct tfm__cl_device *d, const struct tfm_segment *segment)
{
    for (uint32_t i = 0; i < segment->n_tensors; i++) {
        if (tfm__cl_is_trainable(d, segment->tensors[i]))
            return 1;
    }
    return 0;
}

/* How runs of few rows go. */
static void tell_phases(const struct tfm__cl_program *program,
                        void (*line)(void *context, const char *text), void *context)
{
    const struct tfm__cl_phases *phases = &program->phases;
    char text[320];

    if (phases->n)
        snprintf(text, sizeof text, "runs of up to %d rows: %u phases instead of %u launches",
                 TFM__CL_FEW_ROWS, phases->count, program->n_launches);
    else
        snprintf(text, sizeof text, "runs of few rows: launches, no phases: %s", phases->reason);
    line(context, text);
}

static void tell(void *device, const struct tfm_program *program,
                 void (*line)(void *context, const char *text), void *context)
{
    (void)device;
    tell_phases(program->impl, line, context);
}

const struct tfm_notes tfm__cl_notes = {.struct_size = sizeof tfm__cl_notes, .tell = tell};

static void log_line(void *context, const char *text)
{
    const struct tfm_host *const *host = context;
    (*host)->log(TFM_LOG_INFO, "opencl", text);
}

/* Few rows on a processor: phases. */
static enum tfm_status plan_phases(struct tfm__cl_planner *planner)
{
    struct tfm__cl_phases *phases = &planner->program->phases;
    enum tfm_status status = TFM_STATUS_OK;

    if (!tfm__cl_has_phases(planner->device))
        snprintf(phases->reason, sizeof phases->reason,
                 "only CPUs with vectors in the wide shape have them");
    else if (trains(planner->device, planner->segment))
        snprintf(phases->reason, sizeof phases->reason, "parameters are trained");
    else
        status = tfm__cl_phases_make(planner, phases);
    if (phases->n)
        tfm__cl_plan_workspace(planner, phases->workspace);
    if (status == TFM_STATUS_OK)
        tell_phases(planner->program, log_line, &planner->device->host);
    return status;
}

/* No run of a plan for few rows comes to the launches of nodes where there are phases. */
static int comes_to_nodes(const struct tfm__cl_program *p)
{
    return p->phases.n == 0 || p->capacity.rows > TFM__CL_FEW_ROWS ||
           p->capacity.out_rows > TFM__CL_FEW_ROWS;
}

/* What does not build is found now, and not when somebody makes an exec. */
static enum tfm_status build_programs(const struct tfm__cl_planner *planner)
{
    const struct tfm__cl_program *p = planner->program;
    enum tfm_status status = TFM_STATUS_OK;
    cl_program built;

    for (uint32_t i = 0; i < p->n_launches && p->nodes_run && status == TFM_STATUS_OK; i++)
        status = tfm__cl_program_of(planner->device, &p->launches[i].kernel, &built, planner->err);
    return status;
}

enum tfm_status tfm__cl_compile(void *device, struct tfm_weights *weights,
                                const struct tfm_segment *segment,
                                const struct tfm_capacity *capacity, struct tfm_program *program,
                                struct tfm_error *err)
{
    struct tfm__cl_device *d = device;
    struct tfm__cl_pool *pool = NULL;
    size_t bytes;

    for (uint32_t i = 0; i < segment->n_nodes; i++) {
        if (!tfm__cl_op(segment->nodes[i]->op))
            return d->host->error(err, TFM_STATUS_UNSUPPORTED, "opencl: there is no op %d",
                                  (int)segment->nodes[i]->op);
    }
    if (tfm__mul_size(segment->n_nodes + 1u, sizeof(struct tfm__cl_node), &bytes))
        return no_memory(d->host, err);
    struct tfm__cl_program *p = d->host->alloc(sizeof *p);
    if (!p)
        return no_memory(d->host, err);
    memset(p, 0, sizeof *p);
    p->device = d;
    p->capacity = *capacity;
    p->nodes = d->host->alloc(bytes);
    enum tfm_status status =
        p->nodes ? take_weights(d, weights, segment, &pool, err) : no_memory(d->host, err);
    if (status == TFM_STATUS_OK) {
        struct tfm__cl_planner planner = {d, p, pool, segment, capacity, err};
        status = plan_nodes(&planner);
        if (status == TFM_STATUS_OK)
            status = plan_phases(&planner);
        p->nodes_run = comes_to_nodes(p);
        if (status == TFM_STATUS_OK)
            status = build_programs(&planner);
    }
    if (status != TFM_STATUS_OK) {
        destroy(p);
        return status;
    }
    if (p->workspace)
        p->workspace += d->base_align; /* it may begin anywhere; ours begins aligned */
    program->impl = p;
    program->workspace = p->workspace;
    return TFM_STATUS_OK;
}

void tfm__cl_release(void *device, struct tfm_program *program)
{
    (void)device;
    destroy(program->impl);
    program->impl = NULL;
}
