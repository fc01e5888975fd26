/* SPDX-License-Identifier: MIT
 * Phases: the steps that kernels/persistent.cl goes through for few rows, and their memory. What goes
 * from phase to phase lies in the workspace by lifetimes of its own: fused steps read and write other
 * tensors at once than the nodes one by one do, and the arena was laid out for those. */
#include "backends/opencl/phases.h"

#include <stdio.h>
#include <string.h>

#include "lib/core/checked.h"

size_t tfm__cl_phase_rows(const struct tfm__cl_phaser *p, const struct tfm_tensor *tensor)
{
    const uint32_t rows = (uint32_t)tfm_tensor_rows_most(tensor, p->planner->capacity);
    return rows < TFM__CL_FEW_ROWS ? rows : TFM__CL_FEW_ROWS;
}

uint32_t tfm__cl_phase_root(const struct tfm__cl_phaser *p, const struct tfm_tensor *tensor)
{
    const struct tfm_tensor *root = tensor->view_of ? tensor->view_of : tensor;
    const int32_t index = p->planner->segment->index[root->id];
    return (uint32_t)(index >= 0 ? index : p->planner->segment->index[tensor->id]);
}

int tfm__cl_phase_sole(const struct tfm__cl_phaser *p, const struct tfm_tensor *tensor)
{
    const uint32_t root = tfm__cl_phase_root(p, tensor);
    return p->made[root] && p->uses[root] == 1;
}

struct tfm__cl_launch *tfm__cl_phase_step(struct tfm__cl_phaser *p, uint32_t kind,
                                          const struct tfm_node *node, int barrier)
{
    struct tfm__cl_phases *phases = p->phases;
    const struct tfm_host *host = p->planner->device->host;

    if (phases->n == phases->room) {
        const uint32_t room = phases->room ? 2 * phases->room : 64;
        struct tfm__cl_launch *more = host->alloc(room * sizeof *more);
        if (!more) {
            p->failed = 1;
            return NULL;
        }
        if (phases->n)
            memcpy(more, phases->steps, phases->n * sizeof *more);
        host->free(phases->steps);
        phases->steps = more;
        phases->room = room;
    }
    struct tfm__cl_launch *made = &phases->steps[phases->n++];
    memset(made, 0, sizeof *made);
    made->step = tfm__cl_step(node);
    made->step.phase = kind;
    made->step.barrier = (uint32_t)barrier;
    made->n_operands = TFM_STEP_OPERANDS;
    for (uint32_t k = 0; k < TFM_STEP_OPERANDS; k++)
        made->operands[k].type = TFM_STEP_NONE;
    phases->kinds |= 1u << kind;
    return made;
}

void tfm__cl_phase_operand(struct tfm__cl_phaser *p, struct tfm__cl_launch *step, uint32_t k,
                           const struct tfm_tensor *tensor, enum tfm__cl_form form)
{
    struct tfm__cl_operand o = tfm__cl_operand_of(p->planner, tensor, form);

    if (o.place == TFM__CL_MEMORY && p->made[tfm__cl_phase_root(p, tensor)])
        o.tensor = tfm__cl_phase_root(p, tensor);
    step->operands[k] = o;
}

void tfm__cl_phase_place(struct tfm__cl_launch *step, uint32_t k, enum tfm__cl_place place)
{
    step->operands[k] = (struct tfm__cl_operand){.place = place, .type = TFM_STEP_F32};
}

/* ---- memory ---- */

/* A tensor that goes from phase to phase, and no further. */
struct passed {
    uint32_t tensor, first, last; /* phases */
    size_t bytes, offset;
};

static int is_passed(const struct tfm__cl_phaser *p, uint32_t tensor)
{
    const struct tfm_segment *s = p->planner->segment;
    return p->made[tensor] && !s->read_later[tensor] &&
           s->tensors[tensor]->kind == TFM_TENSOR_INTERMEDIATE;
}

static int bytes_of(const struct tfm__cl_phaser *p, uint32_t tensor, size_t *bytes)
{
    const struct tfm_tensor *t = p->planner->segment->tensors[tensor];
    const struct tfm_dtype_info *info = p->planner->device->host->dtype_info(t->dtype);
    size_t n = (size_t)tfm_tensor_row_elements(t) / info->block * info->bytes;

    return tfm__mul_size(
               n, t->extent == TFM_EXTENT_FIXED ? (size_t)t->shape[0] : tfm__cl_phase_rows(p, t),
               &n) ||
           tfm__align_size(n, TFM_ALIGNMENT, bytes);
}

/* The lowest place that is free while `item` lives. Items before it are placed. */
static size_t lowest(const struct passed *items, const struct passed *item)
{
    size_t at = 0;

    for (const struct passed *o = items; o < item;) {
        const int clash = o->first <= item->last && item->first <= o->last &&
                          o->offset < at + item->bytes && at < o->offset + o->bytes;
        at = clash ? o->offset + o->bytes : at;
        o = clash ? items : o + 1;
    }
    return at;
}

/* Notes in which phases a tensor is touched. where [n_tensors]: its number among `items` plus 1. */
static int note(const struct tfm__cl_phaser *p, struct passed *items, uint32_t *n, uint32_t *where,
                uint32_t tensor, uint32_t phase)
{
    if (!where[tensor]) {
        where[tensor] = *n + 1;
        items[*n] = (struct passed){.tensor = tensor, .first = phase};
        if (bytes_of(p, tensor, &items[(*n)++].bytes))
            return 0;
    }
    items[where[tensor] - 1].last = phase;
    return 1;
}

/* Offsets of all that lies in the workspace; 0 when it would not fit the address space. */
static int lay_out(struct tfm__cl_phaser *p, struct passed *items, uint32_t *where)
{
    struct tfm__cl_phases *phases = p->phases;
    const size_t align = TFM_ALIGNMENT / sizeof(float);
    size_t scratch, partial, begin, end = 0;
    uint32_t n = 0, phase = 0;

    for (uint32_t i = 0; i < phases->n; i++) {
        for (uint32_t k = 0; k < TFM_STEP_OPERANDS; k++) {
            const struct tfm__cl_operand *o = &phases->steps[i].operands[k];
            if (o->place == TFM__CL_MEMORY && is_passed(p, o->tensor) &&
                !note(p, items, &n, where, o->tensor, phase))
                return 0;
        }
        phase += phases->steps[i].step.barrier;
    }
    phases->count = phase;
    if (tfm__align_size(p->x, align, &p->x) || tfm__align_size(p->sums, align, &p->sums) ||
        tfm__align_size(p->x + p->sums + p->raw, align, &scratch) || scratch > UINT32_MAX ||
        tfm__mul_size(scratch, p->planner->device->parts * sizeof(float), &begin) ||
        tfm__align_size(p->partial, TFM_ALIGNMENT, &partial))
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        items[i].offset = lowest(items, &items[i]);
        end = items[i].offset + items[i].bytes > end ? items[i].offset + items[i].bytes : end;
    }
    for (uint32_t i = 0; i < phases->n; i++) {
        struct tfm__cl_launch *made = &phases->steps[i];
        made->step.scratch = (uint32_t)scratch;
        made->step.sums_at = (uint32_t)p->x;
        made->step.raw_at = (uint32_t)(p->x + p->sums);
        for (uint32_t k = 0; k < TFM_STEP_OPERANDS; k++) {
            struct tfm__cl_operand *o = &made->operands[k];
            const int own = o->place == TFM__CL_SCRATCH, splits = o->place == TFM__CL_PARTIAL;
            const int passed = o->place == TFM__CL_MEMORY && is_passed(p, o->tensor);
            if (passed)
                o->offset = begin + partial + items[where[o->tensor] - 1].offset;
            else if (own || splits)
                o->offset = own ? 0 : begin;
            if (passed || own || splits)
                o->place = TFM__CL_WORKSPACE;
        }
    }
    return !tfm__add_size(begin, partial, &begin) &&
           !tfm__add_size(begin, end, &phases->workspace) &&
           phases->workspace <= p->planner->device->max_alloc;
}

/* ---- making them ---- */

static void count_uses(struct tfm__cl_phaser *p)
{
    const struct tfm_segment *s = p->planner->segment;

    for (uint32_t i = 0; i < s->n_nodes; i++) {
        const struct tfm_node *node = s->nodes[i];
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            if (node->inputs[k])
                p->uses[tfm__cl_phase_root(p, node->inputs[k])]++;
        }
        for (uint32_t k = 0; k < node->n_outputs; k++)
            p->made[tfm__cl_phase_root(p, node->outputs[k])] = 1;
    }
    for (uint32_t t = 0; t < s->n_tensors; t++)
        p->uses[tfm__cl_phase_root(p, s->tensors[t])] += s->read_later[t] != 0;
}

static void set_options(struct tfm__cl_phases *phases, const struct tfm__cl_device *d)
{
    int n = snprintf(phases->options, sizeof phases->options,
                     "-DTFM_PERSISTENT=1 -DTFM_PHASES=%uu -DTFM_PROJECT_TYPES=%uu", phases->kinds,
                     phases->types);
    if (phases->dim)
        n += snprintf(phases->options + n, sizeof phases->options - (size_t)n,
                      " -DTFM_FEW_DIM=%u -DTFM_FEW_SHARE=%u -DTFM_FEW_CACHE=%uu", phases->dim,
                      phases->share, phases->cache_type);
    if (d->settings.act == TFM__CL_ACT_INT8)
        n += snprintf(phases->options + n, sizeof phases->options - (size_t)n,
                      " -DTFM_PROJECT_INT8=1 %s", d->settings.int8);
#if defined(__x86_64__) || defined(__i386__)
    /* only where it is known that the compiler takes assembly */
    if (strstr(d->platform, "Portable Computing Language"))
        snprintf(phases->options + n, sizeof phases->options - (size_t)n, " -DTFM_PAUSE=1");
#endif
}

enum tfm_status tfm__cl_phases_make(struct tfm__cl_planner *planner, struct tfm__cl_phases *phases)
{
    const struct tfm_host *host = planner->device->host;
    const struct tfm_segment *s = planner->segment;
    struct tfm__cl_phaser p = {.planner = planner, .phases = phases, .x = 1, .sums = 1, .raw = 1};
    size_t bytes;

    if (tfm__mul_size(s->n_tensors + 1u, sizeof(struct passed) + 3 * sizeof(uint32_t), &bytes))
        return host->error(planner->err, TFM_STATUS_NOMEM, "opencl: out of memory for phases");
    struct passed *items = host->alloc(bytes);
    if (!items)
        return host->error(planner->err, TFM_STATUS_NOMEM, "opencl: out of memory for phases");
    memset(items, 0, bytes);
    p.uses = (uint32_t *)(items + s->n_tensors + 1);
    uint32_t *where = p.uses + s->n_tensors + 1;
    p.made = (uint8_t *)(where + s->n_tensors + 1);
    count_uses(&p);
    uint32_t i = 0;
    for (uint32_t n = 1; i < s->n_nodes && n > 0; i += n)
        n = tfm__cl_phase_rules(&p, i);
    if (i < s->n_nodes) {
        phases->n = 0;
    } else if (!lay_out(&p, items, where)) {
        phases->n = 0;
        snprintf(phases->reason, sizeof phases->reason, "they need too much workspace");
    }
    set_options(phases, planner->device);
    host->free(items);
    if (p.failed)
        return host->error(planner->err, TFM_STATUS_NOMEM, "opencl: out of memory for phases");
    return TFM_STATUS_OK;
}
