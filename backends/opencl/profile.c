/* SPDX-License-Identifier: MIT
 * Event times of an exec's launches: a slot for each while a run is enqueued, read when it is over. */
#include <stdio.h>
#include <string.h>

#include "backends/opencl/profile.h"

struct slot {
    cl_event event;
    struct tfm__cl_span span; /* all but the times */
};

struct tfm__cl_profile {
    struct slot *slots; /* [room] */
    uint32_t n, room;
    uint32_t device, exec;
    struct tfm__cl_run run;
    uint32_t lost; /* launches without a slot */
};

static void tell(const struct tfm__cl_exec *e, const char *text)
{
    e->device->host->log(TFM_LOG_WARN, "opencl", text);
}

cl_command_queue_properties tfm__cl_profile_queue(const struct tfm__cl_device *device)
{
    return device->trace ? CL_QUEUE_PROFILING_ENABLE : 0;
}

enum tfm_status tfm__cl_profile_open(struct tfm__cl_exec *e, struct tfm_error *err)
{
    cl_command_queue_properties properties = 0;

    if (!e->device->trace)
        return TFM_STATUS_OK;
    (void)clGetCommandQueueInfo(e->queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties,
                                NULL);
    if (!(properties & CL_QUEUE_PROFILING_ENABLE)) {
        tell(e, "TFM_PROFILE: the program's own queue keeps no times; create it with "
                "CL_QUEUE_PROFILING_ENABLE");
        return TFM_STATUS_OK;
    }
    struct tfm__cl_profile *p = e->device->host->alloc(sizeof *p);
    if (!p)
        return e->device->host->error(err, TFM_STATUS_NOMEM, "opencl: out of memory for a profile");
    memset(p, 0, sizeof *p);
    p->device = e->device->trace;
    p->exec = tfm__cl_trace_exec();
    e->profile = p;
    return TFM_STATUS_OK;
}

void tfm__cl_profile_begin(struct tfm__cl_exec *e, const struct tfm_rows *rows)
{
    if (e->profile)
        e->profile->run = tfm__cl_run_of(rows);
}

static struct slot *take(const struct tfm__cl_exec *e)
{
    struct tfm__cl_profile *p = e->profile;
    const struct tfm_host *host = e->device->host;

    if (p->n == p->room) {
        const uint32_t room = p->room ? 2 * p->room : 512;
        struct slot *more = host->alloc(room * sizeof *more);
        if (!more) {
            p->lost++;
            return NULL;
        }
        if (p->n)
            memcpy(more, p->slots, p->n * sizeof *more);
        host->free(p->slots);
        p->slots = more;
        p->room = room;
    }
    struct slot *slot = &p->slots[p->n++];
    *slot = (struct slot){.span = {.device = p->device,
                                   .exec = p->exec,
                                   .rows = p->run.n,
                                   .decode = (uint32_t)p->run.decode}};
    return slot;
}

/* The layer of launch `index`, "" for one that belongs to none. */
static const char *layer_of(const struct tfm__cl_program *program, uint32_t index)
{
    for (uint32_t i = 0; i < program->n_nodes; i++) {
        const struct tfm__cl_node *node = &program->nodes[i];
        if (index >= node->first && index - node->first < node->count)
            return node->node->scope && node->node->scope->name ? node->node->scope->name : "";
    }
    return "";
}

cl_event *tfm__cl_profile_launch(struct tfm__cl_exec *e, uint32_t index, size_t parts)
{
    static const char prefix[] = "tfm_run_";
    const struct tfm__cl_launch *launch = &e->program->launches[index];
    const char *name = launch->kernel.name;
    struct slot *slot = take(e);

    if (!slot)
        return NULL;
    if (strncmp(name, prefix, sizeof prefix - 1) == 0)
        name += sizeof prefix - 1;
    slot->span.label = tfm__cl_trace_text(name);
    slot->span.layer = tfm__cl_trace_text(layer_of(e->program, index));
    slot->span.parts = (uint32_t)parts;
    slot->span.work = tfm__cl_work_of(launch, &e->profile->run);
    return &slot->event;
}

/* ---- phases ---- */

static const char *const phase_names[] = {
    [TFM_PHASE_NOTHING] = "nothing",     [TFM_PHASE_EMBEDDING] = "embedding",
    [TFM_PHASE_TAKE_ROWS] = "take_rows", [TFM_PHASE_RMS_NORM] = "rms_norm",
    [TFM_PHASE_ROPE] = "rope",           [TFM_PHASE_ADD] = "add",
    [TFM_PHASE_SWIGLU] = "swiglu",       [TFM_PHASE_NORM] = "norm",
    [TFM_PHASE_MERGE] = "merge",         [TFM_PHASE_ATTEND] = "attend",
    [TFM_PHASE_APPEND] = "append",       [TFM_PHASE_PROJECT] = "project",
};

/* What a projection does with its output, as part of its name. */
static const struct {
    uint32_t bit;
    const char *name;
} endings[] = {
    {TFM_PROJECT_GATE, "_gate"},
    {TFM_PROJECT_ADD, "_add"},
    {TFM_PROJECT_ROPE, "_rope"},
    {TFM_PROJECT_APPEND, "_append"},
};

static void join(char *to, size_t size, const char *text)
{
    const size_t used = strlen(to);
    snprintf(to + used, size - used, "%s", text);
}

/* "norm+project_rope": its steps in order, what some of its projections do once. */
static void phase_label(const struct tfm__cl_launch *steps, uint32_t n, char label[96])
{
    uint32_t last = UINT32_MAX, done = 0;

    label[0] = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t phase = steps[i].step.phase;
        if (phase != last)
            join(label, 96, i ? "+" : "");
        if (phase != last)
            join(label, 96,
                 phase < sizeof phase_names / sizeof *phase_names ? phase_names[phase] : "?");
        for (size_t k = 0; k < sizeof endings / sizeof *endings; k++) {
            if (phase == TFM_PHASE_PROJECT && steps[i].step.project & endings[k].bit & ~done)
                join(label, 96, endings[k].name);
        }
        done |= phase == TFM_PHASE_PROJECT ? steps[i].step.project : 0;
        last = phase;
    }
}

/* The layer whose launch has the same weight or cache at the same place. */
static const char *phase_layer(const struct tfm__cl_program *p, const struct tfm__cl_launch *step)
{
    const uint32_t k = step->step.phase == TFM_PHASE_PROJECT ? 1 : 2;
    const struct tfm__cl_operand *mine = &step->operands[k];

    if (step->step.phase != TFM_PHASE_PROJECT && step->step.phase != TFM_PHASE_ATTEND)
        return NULL;
    for (uint32_t i = 0; i < p->n_launches; i++) {
        const struct tfm__cl_operand *o = &p->launches[i].operands[k];
        if (p->launches[i].step.op == step->step.op && k < p->launches[i].n_operands &&
            o->place == mine->place && o->tensor == mine->tensor && o->pool == mine->pool &&
            o->offset == mine->offset)
            return layer_of(p, i);
    }
    return NULL;
}

cl_event *tfm__cl_profile_phase(const struct tfm__cl_exec *e, const struct tfm__cl_launch *steps,
                                uint32_t n, size_t parts)
{
    struct slot *slot = take(e);
    const char *layer = NULL;
    char label[96];

    if (!slot)
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        const struct tfm__cl_work work = tfm__cl_work_of(&steps[i], &e->profile->run);
        slot->span.work.bytes += work.bytes;
        slot->span.work.flop += work.flop;
        layer = layer ? layer : phase_layer(e->program, &steps[i]);
    }
    phase_label(steps, n, label);
    slot->span.label = tfm__cl_trace_text(label);
    slot->span.layer = tfm__cl_trace_text(layer ? layer : "");
    slot->span.parts = (uint32_t)parts;
    return &slot->event;
}

cl_event *tfm__cl_profile_gemm(struct tfm__cl_exec *e, size_t m, size_t n, size_t k)
{
    struct slot *slot = take(e);

    if (!slot)
        return NULL;
    slot->span.label = tfm__cl_trace_text("clblast_sgemm");
    slot->span.layer = tfm__cl_trace_text("");
    slot->span.work.bytes = sizeof(float) * (uint64_t)(m * n + n * k + m * k);
    slot->span.work.flop = 2 * (uint64_t)m * n * k;
    return &slot->event;
}

/* 0 when the implementation does not know. */
static int times(cl_event event, struct tfm__cl_span *span)
{
    cl_ulong begin = 0, end = 0;

    if (clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof begin, &begin, NULL) !=
            CL_SUCCESS ||
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL) !=
            CL_SUCCESS)
        return 0;
    span->begin = begin;
    span->end = end > begin ? end : begin;
    return 1;
}

void tfm__cl_profile_end(struct tfm__cl_exec *e)
{
    struct tfm__cl_profile *p = e->profile;

    if (!p)
        return;
    for (uint32_t i = 0; i < p->n; i++) {
        struct slot *slot = &p->slots[i];
        if (!slot->event) /* the launch failed */
            continue;
        if (!times(slot->event, &slot->span))
            p->lost++;
        else if (p->run.n > 0) /* a run that only warms would stand in the table as slow */
            tfm__cl_trace_add(&slot->span);
        (void)clReleaseEvent(slot->event);
    }
    p->n = 0;
}

void tfm__cl_profile_close(struct tfm__cl_exec *e)
{
    struct tfm__cl_profile *p = e->profile;
    char text[128];

    if (!p)
        return;
    if (p->lost) {
        snprintf(text, sizeof text, "TFM_PROFILE: the times of %u launches were lost", p->lost);
        tell(e, text);
    }
    e->device->host->free(p->slots);
    e->device->host->free(p);
    e->profile = NULL;
}
