/* SPDX-License-Identifier: MIT
 * Exec: the memory and kernel objects of one user of a plan, and the run. */
#include <string.h>

#include "lib/core/alloc.h"
#include "lib/core/checked.h"
#include "lib/core/exec.h"

static enum tfm_status no_memory(struct tfm_error *err)
{
    return tfm_error_set(err, TFM_STATUS_NOMEM, "exec: out of memory");
}

static struct tfm_memory offset_memory(void *buffer, size_t offset)
{
    return (struct tfm_memory){.buffer = buffer, .offset = offset};
}

struct tfm_memory tfm__exec_locate(const struct tfm_exec *exec, uint32_t device,
                                   const struct tfm_tensor *tensor)
{
    const struct tfm__binding *binding = &exec->bindings[tfm__tensor_root(tensor)->id];
    const struct tfm__place *place = tfm__plan_place(exec->plan, device, tensor);
    switch (place->home) {
    case TFM__HOME_ARENA:
        if (binding->direct && binding->device == device)
            return binding->region;
        return offset_memory(exec->arenas[device], place->offset);
    case TFM__HOME_STATE:
        return exec->states[place->offset];
    case TFM__HOME_WEIGHTS:
        return place->memory;
    case TFM__HOME_PACKED:
    case TFM__HOME_NONE:
        break;
    }
    return offset_memory(NULL, 0);
}

/* ---- making it ---- */

/* Into an empty part; what is there after a failure is for close_part. */
static enum tfm_status open_part(const struct tfm_exec *exec, uint32_t s, struct tfm__part *part,
                                 struct tfm_error *err)
{
    const struct tfm_plan *plan = exec->plan;
    const struct tfm__segment *segment = &plan->segments[s];
    struct tfm_device *device = plan->devices[segment->device];
    size_t n_slots = 0;

    part->memory = tfm__alloc_array(segment->public.n_tensors, sizeof *part->memory);
    if (!part->memory)
        return no_memory(err);
    for (uint32_t i = 0; i < segment->public.n_tensors; i++)
        part->memory[i] = tfm__exec_locate(exec, segment->device, segment->public.tensors[i]);
    if (segment->whole) {
        const struct tfm_exec_memory memory = {
            .memory = part->memory,
            .workspace = offset_memory(exec->arenas[segment->device], plan->arena[segment->device]),
        };
        const enum tfm_status status = tfm__device_table(device)->exec_open(
            tfm__device_handle(device), &segment->program, &memory, &part->exec, err);
        if (status != TFM_STATUS_OK)
            tfm__nodes_blame(err, status, tfm_device_backend(device), "preparation",
                             segment->public.nodes, segment->public.n_nodes);
        return status;
    }
    for (uint32_t i = 0; i < segment->public.n_nodes; i++)
        n_slots += segment->public.nodes[i]->n_inputs + segment->public.nodes[i]->n_outputs;
    struct tfm_memory *slot = part->slots = tfm__alloc_array(n_slots, sizeof *slot);
    if (!slot)
        return no_memory(err);
    for (uint32_t i = 0; i < segment->public.n_nodes; i++) {
        const struct tfm_node *node = segment->public.nodes[i];
        for (uint32_t k = 0; k < node->n_inputs; k++, slot++) {
            if (node->inputs[k])
                *slot = part->memory[segment->public.index[node->inputs[k]->id]];
        }
        for (uint32_t k = 0; k < node->n_outputs; k++, slot++)
            *slot = part->memory[segment->public.index[node->outputs[k]->id]];
    }
    return TFM_STATUS_OK;
}

static void close_part(const struct tfm_plan *plan, uint32_t s, struct tfm__part *part)
{
    if (part->exec)
        tfm__device_table(plan->devices[plan->segments[s].device])->exec_close(part->exec);
    tfm__free(part->memory);
    tfm__free(part->slots);
    *part = (struct tfm__part){0};
}

static enum tfm_status run_segments(struct tfm_exec *exec, const struct tfm_rows *rows,
                                    struct tfm_error *err);

static enum tfm_status open_all(struct tfm_exec *exec, const struct tfm_exec *other,
                                struct tfm_error *err)
{
    const struct tfm_plan *plan = exec->plan;
    enum tfm_status status = TFM_STATUS_OK;

    exec->arenas = tfm__alloc_array(plan->n_devices, sizeof *exec->arenas);
    exec->states = tfm__alloc_array(plan->n_states, sizeof *exec->states);
    exec->buffers = tfm__alloc_array(plan->n_states, sizeof *exec->buffers);
    exec->parts = tfm__alloc_array(plan->n_segments, sizeof *exec->parts);
    exec->bindings = tfm__alloc_array(plan->n_tensors, sizeof *exec->bindings);
    exec->staging = tfm__alloc(plan->staging);
    if (!exec->arenas || !exec->states || !exec->buffers || !exec->parts || !exec->bindings ||
        !exec->staging)
        return no_memory(err);
    for (uint32_t d = 0; d < plan->n_devices && status == TFM_STATUS_OK; d++) {
        size_t bytes;
        if (tfm__add_size(plan->arena[d], plan->workspace[d], &bytes))
            return no_memory(err);
        if (bytes)
            status =
                tfm__device_table(plan->devices[d])
                    ->alloc(tfm__device_handle(plan->devices[d]), bytes, &exec->arenas[d], err);
    }
    if (status == TFM_STATUS_OK)
        status = tfm__exec_make_variables(exec, other, err);
    for (uint32_t s = 0; s < plan->n_segments && status == TFM_STATUS_OK; s++)
        status = open_part(exec, s, &exec->parts[s], err);
    if (status == TFM_STATUS_OK) {
        const struct tfm_rows none = {0};
        status = run_segments(exec, &none, err);
    }
    return status;
}

enum tfm_status tfm_exec_create(struct tfm_plan *plan, struct tfm_exec **exec,
                                struct tfm_error *err)
{
    return tfm_exec_create_sharing(plan, NULL, exec, err);
}

enum tfm_status tfm_exec_create_sharing(struct tfm_plan *plan, struct tfm_exec *other,
                                        struct tfm_exec **exec, struct tfm_error *err)
{
    struct tfm_exec *e;

    tfm_error_clear(err);
    e = tfm__alloc(sizeof *e);
    if (!e)
        return no_memory(err);
    atomic_fetch_add(&plan->holders, 1);
    e->plan = plan;
    const enum tfm_status status = open_all(e, other, err);
    if (status != TFM_STATUS_OK) {
        tfm_exec_destroy(e);
        return status;
    }
    *exec = e;
    return TFM_STATUS_OK;
}

static void release_buffer(const struct tfm_device *device, void *buffer)
{
    if (buffer)
        tfm__device_table(device)->free(tfm__device_handle(device), buffer);
}

void tfm_exec_destroy(struct tfm_exec *exec)
{
    if (!exec)
        return;
    struct tfm_plan *plan = exec->plan;
    for (uint32_t s = 0; exec->parts && s < plan->n_segments; s++)
        close_part(plan, s, &exec->parts[s]);
    tfm__exec_unbind_all(exec);
    tfm__exec_drop_variables(exec);
    for (uint32_t d = 0; exec->arenas && d < plan->n_devices; d++)
        release_buffer(plan->devices[d], exec->arenas[d]);
    tfm__free(exec->arenas);
    tfm__free(exec->states);
    tfm__free(exec->buffers);
    tfm__free(exec->parts);
    tfm__free(exec->bindings);
    tfm__free(exec->staging);
    tfm__free(exec);
    tfm_plan_destroy(plan);
}

/* ---- running ---- */

static enum tfm_status copy_across(struct tfm_exec *exec, const struct tfm__copy *copy,
                                   const struct tfm_rows *rows, struct tfm_error *err)
{
    const struct tfm_plan *plan = exec->plan;
    const struct tfm_tensor *tensor = tfm_graph_tensor(plan->graph, copy->tensor);
    const struct tfm_memory from = tfm__exec_locate(exec, copy->from, tensor);
    const struct tfm_memory to = tfm__exec_locate(exec, copy->to, tensor);
    const size_t bytes = tfm__exec_run_bytes(tensor, rows);
    enum tfm_status status;

    if (!bytes)
        return TFM_STATUS_OK;
    status = tfm__device_table(plan->devices[copy->from])
                 ->download(tfm__device_handle(plan->devices[copy->from]), from, exec->staging,
                            bytes, err);
    if (status == TFM_STATUS_OK)
        status = tfm__device_table(plan->devices[copy->to])
                     ->upload(tfm__device_handle(plan->devices[copy->to]), exec->staging, to, bytes,
                              err);
    return status;
}

static enum tfm_status run_nodes(const struct tfm_plan *plan, const struct tfm__segment *segment,
                                 const struct tfm__part *part, const struct tfm_rows *rows,
                                 struct tfm_error *err)
{
    struct tfm_device *device = plan->devices[segment->device];
    const struct tfm_memory *slot = part->slots;

    for (uint32_t i = 0; i < segment->public.n_nodes; i++) {
        const struct tfm_node *node = segment->public.nodes[i];
        const struct tfm_memory *inputs = slot, *outputs = slot + node->n_inputs;
        const enum tfm_status status = tfm__device_table(device)->run_node(
            tfm__device_handle(device), node, inputs, outputs, rows, err);
        if (status != TFM_STATUS_OK) {
            tfm__nodes_blame(err, status, tfm_device_backend(device), "run", &node, 1);
            return status;
        }
        slot += node->n_inputs + node->n_outputs;
    }
    return TFM_STATUS_OK;
}

static enum tfm_status run_segment(const struct tfm_plan *plan, const struct tfm__segment *segment,
                                   const struct tfm__part *part, const struct tfm_rows *rows,
                                   struct tfm_error *err)
{
    const struct tfm_device *device = plan->devices[segment->device];

    if (!segment->whole)
        return run_nodes(plan, segment, part, rows, err);
    const enum tfm_status status = tfm__device_table(device)->exec_run(part->exec, rows, err);
    if (status != TFM_STATUS_OK)
        tfm__nodes_blame(err, status, tfm_device_backend(device), "run", segment->public.nodes,
                         segment->public.n_nodes);
    return status;
}

static enum tfm_status run_segments(struct tfm_exec *exec, const struct tfm_rows *rows,
                                    struct tfm_error *err)
{
    const struct tfm_plan *plan = exec->plan;
    enum tfm_status status = TFM_STATUS_OK;

    for (uint32_t s = 0; s < plan->n_segments && status == TFM_STATUS_OK; s++) {
        const struct tfm__segment *segment = &plan->segments[s];
        for (uint32_t c = 0; c < segment->n_copies && status == TFM_STATUS_OK; c++)
            status = copy_across(exec, &segment->copies[c], rows, err);
        if (status != TFM_STATUS_OK)
            break;
        status = run_segment(plan, segment, &exec->parts[s], rows, err);
    }
    /* what is left: a copy between devices that fails without a word */
    if (status != TFM_STATUS_OK)
        tfm_error_set(err, status, "run failed: %s", tfm_status_text(status));
    return status;
}

enum tfm_status tfm_exec_run(struct tfm_exec *exec, const struct tfm_rows *rows,
                             struct tfm_error *err)
{
    enum tfm_status status;

    tfm_error_clear(err);
    status = tfm__exec_check_inputs(exec, rows, err);
    if (status == TFM_STATUS_OK)
        status = tfm__exec_move_inputs(exec, rows, err);
    if (status == TFM_STATUS_OK)
        status = run_segments(exec, rows, err);
    if (status == TFM_STATUS_OK)
        status = tfm__exec_move_outputs(exec, rows, err);
    return status;
}

/* ---- with other memory ---- */

static int touches(const struct tfm_segment *segment, const struct tfm_tensor *root)
{
    for (uint32_t i = 0; i < segment->n_tensors; i++) {
        if (tfm__tensor_root(segment->tensors[i]) == root)
            return 1;
    }
    return 0;
}

enum tfm_status tfm__exec_reopen(struct tfm_exec *exec, const struct tfm_tensor *root,
                                 struct tfm_error *err)
{
    const struct tfm_plan *plan = exec->plan;
    struct tfm__part *fresh = tfm__alloc_array(plan->n_segments, sizeof *fresh);
    const struct tfm_rows none = {0};
    enum tfm_status status = TFM_STATUS_OK;

    if (!fresh)
        return no_memory(err);
    for (uint32_t s = 0; s < plan->n_segments && status == TFM_STATUS_OK; s++) {
        const struct tfm__segment *segment = &plan->segments[s];
        if (!touches(&segment->public, root))
            continue;
        status = open_part(exec, s, &fresh[s], err);
        /* warm, as after tfm_exec_create */
        if (status == TFM_STATUS_OK)
            status = run_segment(plan, segment, &fresh[s], &none, err);
    }
    /* swap, so that what is closed now is what is no longer wanted */
    for (uint32_t s = 0; s < plan->n_segments && status == TFM_STATUS_OK; s++) {
        const struct tfm__part old = exec->parts[s];
        if (!fresh[s].memory)
            continue;
        exec->parts[s] = fresh[s];
        fresh[s] = old;
    }
    for (uint32_t s = 0; s < plan->n_segments; s++)
        close_part(plan, s, &fresh[s]);
    tfm__free(fresh);
    return status;
}
