/* SPDX-License-Identifier: MIT
 * Compile: nodes to devices, runs of nodes to segments, tensors to places (places.c), segments to programs. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "lib/core/alloc.h"
#include "lib/core/checked.h"
#include "lib/core/log.h"
#include "lib/core/plan.h"
#include "lib/core/values.h"

static enum tfm_status no_memory(struct tfm_error *err)
{
    return tfm_error_set(err, TFM_STATUS_NOMEM, "plan: out of memory");
}

/* ---- nodes to devices ---- */

static int has_reference(const struct tfm_plan *plan)
{
    for (uint32_t d = 0; d < plan->n_devices; d++) {
        if (strcmp(tfm_device_backend(plan->devices[d]), "reference") == 0)
            return 1;
    }
    return 0;
}

/* Asks the devices in turn; collects the refusals of those before the one that takes the node. */
static enum tfm_status assign_node(struct tfm_plan *plan, uint32_t n, struct tfm_error *err)
{
    const struct tfm_node *node = tfm_graph_node(plan->graph, n);
    char refusals[700] = "";
    size_t used = 0;

    for (uint32_t d = 0; d < plan->n_devices; d++) {
        struct tfm_device *device = plan->devices[d];
        char reason[300] = "no reason given";
        if (tfm__device_may_see(device, node, reason, sizeof reason) &&
            tfm__device_table(device)->supports(tfm__device_handle(device), node, &plan->capacity,
                                                reason, sizeof reason)) {
            plan->node_device[n] = d;
            if (used && !(plan->refusals[n] = tfm__strdup(refusals)))
                return no_memory(err);
            return TFM_STATUS_OK;
        }
        const int written = snprintf(refusals + used, sizeof refusals - used, "%s%s: %s",
                                     used ? "; " : "", tfm_device_backend(device), reason);
        used = written < 0 || used + (size_t)written >= sizeof refusals ? sizeof refusals - 1
                                                                        : used + (size_t)written;
    }
    if (!has_reference(plan))
        return tfm_error_set(err, TFM_STATUS_STRICT,
                             "%s: no device takes %s, and `reference` was left out (TFM_STRICT, or "
                             "not in the list): %s",
                             tfm__layer_name(node), tfm_op_name(node->op), refusals);
    return tfm_error_set(err, TFM_STATUS_UNSUPPORTED, "%s: no device takes %s: %s",
                         tfm__layer_name(node), tfm_op_name(node->op), refusals);
}

/* ---- segments ---- */

static uint32_t count_segments(const struct tfm_plan *plan)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_nodes; i++)
        n += i == 0 || plan->node_device[i] != plan->node_device[i - 1];
    return n;
}

/* Fills nodes, tensors and index of a segment whose device and first_node are set. */
static enum tfm_status fill_segment(struct tfm_plan *plan, struct tfm__segment *segment,
                                    struct tfm_error *err)
{
    const uint32_t n = segment->public.n_nodes;
    const struct tfm_node **nodes = tfm__alloc_array(n, sizeof *nodes);
    int32_t *index = tfm__alloc_array(plan->n_tensors + 1, sizeof *index);
    const struct tfm_tensor **tensors = tfm__alloc_array(plan->n_tensors + 1, sizeof *tensors);
    uint32_t n_tensors = 0;

    segment->public.nodes = nodes;
    segment->public.index = index;
    segment->public.tensors = tensors;
    if (!nodes || !index || !tensors)
        return no_memory(err);
    for (uint32_t t = 0; t < plan->n_tensors; t++)
        index[t] = -1;
    for (uint32_t i = 0; i < n; i++) {
        const struct tfm_node *node = nodes[i] =
            tfm_graph_node(plan->graph, segment->first_node + i);
        for (uint32_t k = 0; k < node->n_inputs + node->n_outputs; k++) {
            const struct tfm_tensor *tensor =
                k < node->n_inputs ? node->inputs[k] : node->outputs[k - node->n_inputs];
            if (tensor && index[tensor->id] < 0) {
                index[tensor->id] = (int32_t)n_tensors;
                tensors[n_tensors++] = tensor;
            }
        }
    }
    segment->public.n_tensors = n_tensors;
    segment->public.read_later = tfm__alloc_array(n_tensors, 1);
    segment->program.not_written = tfm__alloc_array(n_tensors, 1);
    if (!segment->public.read_later || !segment->program.not_written)
        return no_memory(err);
    segment->whole = tfm__device_caps(plan->devices[segment->device])->whole_segments;
    return TFM_STATUS_OK;
}

static enum tfm_status make_segments(struct tfm_plan *plan, struct tfm_error *err)
{
    plan->n_segments = 0;
    plan->segments = tfm__alloc_array(count_segments(plan) + 1, sizeof *plan->segments);
    if (!plan->segments)
        return no_memory(err);
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        if (i == 0 || plan->node_device[i] != plan->node_device[i - 1]) {
            plan->segments[plan->n_segments].device = plan->node_device[i];
            plan->segments[plan->n_segments++].first_node = i;
        }
        plan->node_segment[i] = plan->n_segments - 1;
        plan->segments[plan->n_segments - 1].public.n_nodes++;
    }
    for (uint32_t s = 0; s < plan->n_segments; s++) {
        const enum tfm_status status = fill_segment(plan, &plan->segments[s], err);
        if (status != TFM_STATUS_OK)
            return status;
    }
    return TFM_STATUS_OK;
}

/* ---- segments to programs ---- */

static enum tfm_status load_weights(struct tfm_plan *plan, struct tfm__segment *segment,
                                    struct tfm_error *err)
{
    for (uint32_t i = 0; i < segment->public.n_tensors; i++) {
        const struct tfm_tensor *root = tfm__tensor_root(segment->public.tensors[i]);
        struct tfm__place *place = tfm__plan_place(plan, segment->device, root);
        if (place->home != TFM__HOME_WEIGHTS)
            continue;
        const enum tfm_status status =
            tfm__weights_memory(plan->weights, root, &place->memory, err);
        if (status != TFM_STATUS_OK)
            return status;
    }
    return TFM_STATUS_OK;
}

/* Values that an exec starts from: there is a weight for each trainable parameter. */
static enum tfm_status check_trainable(const struct tfm_plan *plan,
                                       const struct tfm__segment *segment, struct tfm_error *err)
{
    for (uint32_t i = 0; i < segment->public.n_tensors; i++) {
        const struct tfm_tensor *root = tfm__tensor_root(segment->public.tensors[i]);
        if (!root->is_trainable)
            continue;
        const enum tfm_status status = tfm__weights_check(plan->weights, root, err);
        if (status != TFM_STATUS_OK)
            return status;
    }
    return TFM_STATUS_OK;
}

/* Indices that lie with the weights (positions, buckets) are checked here as inputs are in a run. */
static enum tfm_status check_indices(const struct tfm_plan *plan,
                                     const struct tfm__segment *segment, struct tfm_error *err)
{
    for (uint32_t i = 0; i < segment->public.n_tensors; i++) {
        const struct tfm_tensor *root = tfm__tensor_root(segment->public.tensors[i]);
        struct tfm_weight weight;
        if (!tfm__plan_is_weight(root) || root->dtype != TFM_DTYPE_I32)
            continue;
        enum tfm_status status = tfm__weights_host_get(plan->weights, root, &weight, err);
        if (status == TFM_STATUS_OK)
            status = tfm__values_check_for(plan->graph, root, weight.data,
                                           tfm_tensor_elements(root), err);
        if (status != TFM_STATUS_OK)
            return status;
    }
    return TFM_STATUS_OK;
}

static enum tfm_status compile_segment(struct tfm_plan *plan, struct tfm__segment *segment,
                                       struct tfm_error *err)
{
    struct tfm_device *device = plan->devices[segment->device];
    enum tfm_status status;

    tfm__weights_begin(plan->weights, device);
    status = check_indices(plan, segment, err);
    if (status == TFM_STATUS_OK)
        status = check_trainable(plan, segment, err);
    if (status == TFM_STATUS_OK && segment->whole) {
        status = tfm__device_table(device)->compile(tfm__device_handle(device), plan->weights,
                                                    &segment->public, &plan->capacity,
                                                    &segment->program, err);
        if (status != TFM_STATUS_OK)
            tfm__nodes_blame(err, status, tfm_device_backend(device), "compile",
                             segment->public.nodes, segment->public.n_nodes);
    } else if (status == TFM_STATUS_OK) {
        status = load_weights(plan, segment, err);
    }
    tfm__weights_end(plan->weights);
    if (status != TFM_STATUS_OK) {
        segment->program.impl = NULL;
        return status;
    }
    if (segment->program.workspace > plan->workspace[segment->device])
        plan->workspace[segment->device] = segment->program.workspace;
    /* what the program never writes needs no memory, unless somebody else reads it */
    for (uint32_t i = 0; i < segment->public.n_tensors; i++) {
        const struct tfm_tensor *tensor = segment->public.tensors[i];
        struct tfm__place *place = tfm__plan_place(plan, segment->device, tensor);
        if (segment->program.not_written[i] && !segment->public.read_later[i] &&
            tensor->kind == TFM_TENSOR_INTERMEDIATE && place->home == TFM__HOME_ARENA)
            place->home = TFM__HOME_NONE;
    }
    return TFM_STATUS_OK;
}

static enum tfm_status check_sizes(const struct tfm_plan *plan, struct tfm_error *err)
{
    for (uint32_t d = 0; d < plan->n_devices; d++) {
        const size_t limit = tfm__device_caps(plan->devices[d])->max_alloc;
        const char *name = tfm_device_backend(plan->devices[d]);
        if (limit && plan->arena[d] + plan->workspace[d] > limit)
            return tfm_error_set(err, TFM_STATUS_NOMEM,
                                 "%s: the arena needs %zu bytes in one buffer, the device gives at "
                                 "most %zu; run fewer rows at once (-b)",
                                 name, plan->arena[d] + plan->workspace[d], limit);
        for (uint32_t s = 0; s < plan->n_states; s++) {
            if (limit && plan->states[s].device == d && plan->states[s].bytes > limit)
                return tfm_error_set(
                    err, TFM_STATUS_NOMEM,
                    "%s: %s \"%s\" needs %zu bytes in one buffer, the device "
                    "gives at most %zu%s",
                    name, plan->states[s].tensor->is_trainable ? "parameter" : "state",
                    plan->states[s].tensor->name, plan->states[s].bytes, limit,
                    plan->states[s].tensor->rank == TFM_MAX_RANK ? "; use a smaller context (-c)"
                                                                 : "");
        }
    }
    return TFM_STATUS_OK;
}

/* ---- the object ---- */

static enum tfm_status allocate(struct tfm_graph *graph, struct tfm_weights *weights,
                                struct tfm_device *const *devices, size_t n_devices,
                                const struct tfm_capacity *capacity, struct tfm_plan **plan,
                                struct tfm_error *err)
{
    struct tfm_plan *p = tfm__alloc(sizeof *p);

    if (!p)
        return no_memory(err);
    *plan = p;
    atomic_init(&p->holders, 1);
    tfm__graph_retain(graph);
    tfm__graph_freeze(graph);
    p->graph = graph;
    p->weights = tfm__weights_retain(weights);
    p->capacity = *capacity;
    if (!p->capacity.sequences)
        p->capacity.sequences = 1;
    p->n_nodes = tfm_graph_node_count(graph);
    p->n_tensors = tfm_graph_tensor_count(graph);
    p->devices = tfm__alloc_array(n_devices, sizeof *p->devices);
    for (size_t i = 0; p->devices && i < n_devices; i++, p->n_devices++)
        p->devices[i] = tfm_device_retain(devices[i]);
    p->node_device = tfm__alloc_array(p->n_nodes, sizeof *p->node_device);
    p->node_segment = tfm__alloc_array(p->n_nodes, sizeof *p->node_segment);
    p->refusals = tfm__alloc_array(p->n_nodes, sizeof *p->refusals);
    p->places = tfm__alloc_array(p->n_tensors * n_devices, sizeof *p->places);
    p->maker = tfm__alloc_array(p->n_tensors, sizeof *p->maker);
    p->states = tfm__alloc_array(p->n_tensors, sizeof *p->states);
    p->arena = tfm__alloc_array(n_devices, sizeof *p->arena);
    p->workspace = tfm__alloc_array(n_devices, sizeof *p->workspace);
    if (!p->devices || !p->node_device || !p->node_segment || !p->refusals || !p->places ||
        !p->maker || !p->states || !p->arena || !p->workspace)
        return no_memory(err);
    return TFM_STATUS_OK;
}

void tfm_plan_destroy(struct tfm_plan *plan)
{
    if (!plan || atomic_fetch_sub(&plan->holders, 1) != 1)
        return;
    for (uint32_t s = 0; s < plan->n_segments; s++) {
        struct tfm__segment *segment = &plan->segments[s];
        struct tfm_device *device = plan->devices[segment->device];
        if (segment->program.impl)
            tfm__device_table(device)->release(tfm__device_handle(device), &segment->program);
        tfm__free((void *)segment->public.nodes);
        tfm__free((void *)segment->public.tensors);
        tfm__free((void *)segment->public.index);
        tfm__free((void *)segment->public.read_later);
        tfm__free(segment->program.not_written);
        tfm__free(segment->copies);
    }
    for (uint32_t n = 0; plan->refusals && n < plan->n_nodes; n++)
        tfm__free(plan->refusals[n]);
    tfm__free(plan->segments);
    tfm__free(plan->refusals);
    tfm__free(plan->node_device);
    tfm__free(plan->node_segment);
    tfm__free(plan->places);
    tfm__free(plan->maker);
    tfm__free(plan->states);
    tfm__free(plan->arena);
    tfm__free(plan->workspace);
    tfm_weights_release(plan->weights);
    for (uint32_t d = 0; d < plan->n_devices; d++)
        tfm_device_release(plan->devices[d]);
    tfm__free(plan->devices);
    tfm_graph_destroy(plan->graph);
    tfm__free(plan);
}

static void report(const struct tfm_plan *plan)
{
    struct tfm_plan_summary sum;

    if (!tfm__verbose())
        return;
    tfm_plan_summarize(plan, &sum);
    tfm__log(TFM_LOG_INFO, "plan",
             "%u nodes in %u segments, %u fell back, %u device changes, arena %zu bytes, state %zu "
             "bytes",
             sum.nodes, sum.segments, sum.fallbacks, sum.device_changes, sum.arena_bytes,
             sum.state_bytes);
    for (uint32_t n = 0; n < plan->n_nodes; n++) {
        const struct tfm_node *node = tfm_graph_node(plan->graph, n);
        if (plan->refusals[n])
            tfm__log(TFM_LOG_INFO, "plan", "%s: %s falls back to %s: %s", tfm__layer_name(node),
                     tfm_op_name(node->op), tfm_device_backend(plan->devices[plan->node_device[n]]),
                     plan->refusals[n]);
    }
}

enum tfm_status tfm_plan_compile(struct tfm_graph *graph, struct tfm_weights *weights,
                                 struct tfm_device *const *devices, size_t n_devices,
                                 const struct tfm_capacity *capacity, struct tfm_plan **plan,
                                 struct tfm_error *err)
{
    struct tfm_plan *p = NULL;
    enum tfm_status status = tfm_graph_check(graph, err);

    if (status != TFM_STATUS_OK)
        return status;
    if (n_devices == 0 || capacity->rows == 0 || capacity->rows > INT32_MAX ||
        capacity->out_rows > capacity->rows || tfm_graph_node_count(graph) == 0)
        return tfm_error_set(
            err, TFM_STATUS_INVALID_ARGUMENT,
            "plan: %zu devices, %u nodes, capacity of %u rows and %u out rows: each "
            "but the last must be positive, and the last at most the rows",
            n_devices, tfm_graph_node_count(graph), capacity->rows, capacity->out_rows);
    status = allocate(graph, weights, devices, n_devices, capacity, &p, err);
    for (uint32_t n = 0; status == TFM_STATUS_OK && n < p->n_nodes; n++)
        status = assign_node(p, n, err);
    if (status == TFM_STATUS_OK)
        status = make_segments(p, err);
    if (status == TFM_STATUS_OK)
        status = tfm__plan_places(p, err);
    if (status == TFM_STATUS_OK)
        status = tfm__plan_connect(p, err);
    for (uint32_t s = 0; status == TFM_STATUS_OK && s < p->n_segments; s++)
        status = compile_segment(p, &p->segments[s], err);
    if (status == TFM_STATUS_OK)
        status = tfm__plan_layout(p, err);
    if (status == TFM_STATUS_OK)
        status = check_sizes(p, err);
    if (status != TFM_STATUS_OK) {
        tfm_plan_destroy(p);
        return status;
    }
    report(p);
    *plan = p;
    return TFM_STATUS_OK;
}

void tfm_plan_summarize(const struct tfm_plan *plan, struct tfm_plan_summary *summary)
{
    *summary = (struct tfm_plan_summary){.nodes = plan->n_nodes, .segments = plan->n_segments};
    for (uint32_t n = 0; n < plan->n_nodes; n++)
        summary->fallbacks += plan->refusals[n] != NULL;
    if (plan->n_segments)
        summary->device_changes = plan->n_segments - 1;
    for (uint32_t d = 0; d < plan->n_devices; d++)
        summary->arena_bytes += plan->arena[d] + plan->workspace[d];
    for (uint32_t s = 0; s < plan->n_states; s++)
        summary->state_bytes += plan->states[s].bytes;
}

void tfm_plan_summary_add(struct tfm_plan_summary *sum, const struct tfm_plan_summary *summary)
{
    sum->nodes += summary->nodes;
    sum->segments += summary->segments;
    sum->fallbacks += summary->fallbacks;
    sum->device_changes += summary->device_changes;
    sum->arena_bytes += summary->arena_bytes;
    if (summary->state_bytes > sum->state_bytes)
        sum->state_bytes = summary->state_bytes;
}

enum tfm_status tfm_plan_describe(const struct tfm_plan *plan, uint32_t node,
                                  struct tfm_plan_node *description)
{
    if (node >= plan->n_nodes)
        return TFM_STATUS_OUT_OF_RANGE;
    *description = (struct tfm_plan_node){
        .node = tfm_graph_node(plan->graph, node),
        .backend = tfm_device_backend(plan->devices[plan->node_device[node]]),
        .segment = plan->node_segment[node],
        .fallback = plan->refusals[node] != NULL,
        .refusal = plan->refusals[node] ? plan->refusals[node] : "",
    };
    return TFM_STATUS_OK;
}

enum tfm_status tfm_plan_notes(const struct tfm_plan *plan, uint32_t segment,
                               void (*line)(void *context, const char *text), void *context)
{
    if (segment >= plan->n_segments)
        return TFM_STATUS_OUT_OF_RANGE;
    const struct tfm__segment *s = &plan->segments[segment];
    struct tfm_device *device = plan->devices[s->device];
    const struct tfm_notes *notes = tfm_device_extension(device, TFM_NOTES_EXTENSION);
    const size_t needed = offsetof(struct tfm_notes, tell) + sizeof notes->tell;

    if (s->whole && notes && notes->struct_size >= needed && notes->tell)
        notes->tell(tfm__device_handle(device), &s->program, line, context);
    return TFM_STATUS_OK;
}

const struct tfm_graph *tfm_plan_graph(const struct tfm_plan *plan)
{
    return plan->graph;
}
