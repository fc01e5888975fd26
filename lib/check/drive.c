/* SPDX-License-Identifier: MIT
 * The driver: memory with guard zones, the two ways of the backend ABI, and what must hold after a
 * run.
 *
 *   buffer of one kind (weights, activations, states):
 *   12345 12345 ... | tensor | 12345 ... | tensor | ... 12345      as f32, at least 64 between two
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/check/drive_plan.h"

/* ---- the backend's two ways ---- */

static enum tfm_status copy_weights(struct tfm__drive_plan *plan, void *const *data,
                                    struct tfm_error *err)
{
    for (uint32_t id = 0; id < plan->n_tensors; id++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(plan->graph, id);
        const size_t bytes = tfm__drive_bytes(tensor, tensor->shape[0]);
        if (!tfm__drive_is_weight(tensor) || tensor->view_of)
            continue;
        plan->allocation[id] = malloc(bytes + 1);
        if (!plan->allocation[id])
            return tfm__drive_no_memory(err);
        plan->weight[id] = (unsigned char *)plan->allocation[id] + 1;
        memcpy(plan->weight[id], data[id], bytes);
    }
    return TFM_STATUS_OK;
}

static void add_tensor(struct tfm__drive_plan *plan, const struct tfm_tensor *tensor)
{
    if (!tensor || plan->index[tensor->id] >= 0)
        return;
    plan->index[tensor->id] = (int32_t)plan->segment.n_tensors;
    plan->read_later[plan->segment.n_tensors] =
        tensor->kind == TFM_TENSOR_OUTPUT || tfm__drive_is_variable(tensor);
    plan->tensors[plan->segment.n_tensors++] = tensor;
    add_tensor(plan, tensor->view_of);
}

static enum tfm_status compile(struct tfm__drive_plan *plan, struct tfm_error *err)
{
    const struct tfm__drive_backend *b = plan->backend;

    for (uint32_t i = 0; i < plan->n_tensors; i++)
        plan->index[i] = -1;
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        plan->nodes[i] = tfm_graph_node(plan->graph, i);
        for (uint32_t k = 0; k < plan->nodes[i]->n_inputs; k++)
            add_tensor(plan, plan->nodes[i]->inputs[k]);
        for (uint32_t k = 0; k < plan->nodes[i]->n_outputs; k++)
            add_tensor(plan, plan->nodes[i]->outputs[k]);
    }
    plan->segment.n_nodes = plan->n_nodes;
    plan->segment.nodes = plan->nodes;
    plan->segment.tensors = plan->tensors;
    plan->segment.index = plan->index;
    plan->segment.read_later = plan->read_later;
    plan->weights = (struct tfm_weights){.graph = plan->graph, .data = plan->weight};
    if (!b->caps.whole_segments || !b->table->compile)
        return TFM_STATUS_OK;

    plan->weights.compiling = 1;
    const enum tfm_status status = b->table->compile(b->device, &plan->weights, &plan->segment,
                                                     &plan->capacity, &plan->program, err);
    plan->weights.compiling = 0;
    plan->compiled = status == TFM_STATUS_OK;
    for (uint32_t i = 0; i < plan->segment.n_tensors && plan->compiled; i++) {
        if (plan->program.not_written[i] &&
            (plan->read_later[i] || plan->tensors[i]->kind != TFM_TENSOR_INTERMEDIATE))
            return tfm_error_set(err, TFM_STATUS_INTERNAL,
                                 "compile gave '%s' away, but it is read later or not internal",
                                 plan->tensors[i]->name);
    }
    return status;
}

static enum tfm_status run_nodes(const struct tfm__drive_plan *plan, const struct tfm_rows *rows,
                                 struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;

    for (uint32_t i = 0; i < plan->n_nodes && status == TFM_STATUS_OK; i++) {
        const struct tfm_node *node = plan->nodes[i];
        struct tfm_memory inputs[TFM_MAX_INPUTS], outputs[TFM_MAX_OUTPUTS];
        for (uint32_t k = 0; k < node->n_inputs; k++)
            inputs[k] = tfm__drive_memory_locate(plan, node->inputs[k]);
        for (uint32_t k = 0; k < node->n_outputs; k++)
            outputs[k] = tfm__drive_memory_locate(plan, node->outputs[k]);
        status =
            plan->backend->table->run_node(plan->backend->device, node, inputs, outputs, rows, err);
    }
    return status;
}

static enum tfm_status run_rows(const struct tfm__drive_plan *plan, const struct tfm_rows *rows,
                                struct tfm_error *err)
{
    tfm__drive_parallel_whole((plan->flags & TFM__DRIVE_WHOLE) != 0);
    if (plan->compiled)
        return plan->backend->table->exec_run(plan->exec, rows, err);
    return run_nodes(plan, rows, err);
}

static enum tfm_status open_exec(struct tfm__drive_plan *plan, struct tfm_error *err)
{
    const struct tfm__drive_backend *b = plan->backend;
    struct tfm_exec_memory memory = {.memory = plan->memory};

    for (uint32_t i = 0; i < plan->segment.n_tensors; i++)
        plan->memory[i] = tfm__drive_memory_locate(plan, plan->tensors[i]);
    if (!plan->compiled)
        return TFM_STATUS_OK;
    memory.workspace.buffer = plan->regions[HOME_ARENA].buffer;
    memory.workspace.offset = plan->workspace_offset;
    return b->table->exec_open(b->device, &plan->program, &memory, &plan->exec, err);
}

/* ---- opening and closing ---- */

enum tfm_status tfm__drive_device_open(const struct tfm_backend *table,
                                       const struct tfm_probe *probe, uint32_t index,
                                       struct tfm__drive_backend *backend, struct tfm_error *err)
{
    struct tfm__drive_backend b = {.table = table};
    const enum tfm_status status = table->open(tfm__drive_host(), index, &b.device, err);

    if (status != TFM_STATUS_OK)
        return status;
    table->caps(b.device, &b.caps);
    snprintf(b.name, sizeof b.name, "%s: %s (%s)", table->name, probe->devices[index].name,
             probe->devices[index].platform);
    *backend = b;
    return TFM_STATUS_OK;
}

void tfm__drive_close(struct tfm__drive_backend *backend)
{
    if (backend->table)
        backend->table->close(backend->device);
    backend->table = NULL;
}

static enum tfm_status ask_support(const struct tfm__drive_plan *plan, struct tfm_error *err)
{
    const struct tfm__drive_backend *b = plan->backend;

    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        const struct tfm_node *node = tfm_graph_node(plan->graph, i);
        char reason[256] = "";
        if (!b->table->supports(b->device, node, &plan->capacity, reason, sizeof reason))
            return tfm_error_set(err, TFM_STATUS_UNSUPPORTED, "%s refuses %s: %s", b->name,
                                 tfm_op_name(node->op), reason);
    }
    return TFM_STATUS_OK;
}

enum tfm_status tfm__drive_plan_open(const struct tfm__drive_backend *backend,
                                     const struct tfm_graph *graph, void *const *data,
                                     const struct tfm_capacity *capacity, unsigned flags,
                                     struct tfm__drive_plan **plan, struct tfm_error *err)
{
    static const struct tfm_rows none;
    const size_t n = tfm_graph_tensor_count(graph) + 1, nodes = tfm_graph_node_count(graph) + 1;
    struct tfm__drive_plan *p = calloc(1, sizeof *p);

    if (!p)
        return tfm__drive_no_memory(err);
    p->backend = backend;
    p->graph = graph;
    p->capacity = *capacity;
    p->flags = flags;
    p->n_tensors = tfm_graph_tensor_count(graph);
    p->n_nodes = tfm_graph_node_count(graph);
    p->home = calloc(n, sizeof *p->home);
    p->offset = calloc(n, sizeof *p->offset);
    p->weight = calloc(n, sizeof *p->weight);
    p->allocation = calloc(n, sizeof *p->allocation);
    p->nodes = calloc(nodes, sizeof *p->nodes);
    p->tensors = calloc(n, sizeof *p->tensors);
    p->index = calloc(n, sizeof *p->index);
    p->read_later = calloc(n, sizeof *p->read_later);
    p->memory = calloc(n, sizeof *p->memory);
    p->program.not_written = calloc(n, 1);
    enum tfm_status status = TFM_STATUS_OK;
    if (!p->home || !p->offset || !p->weight || !p->allocation || !p->nodes || !p->tensors ||
        !p->index || !p->read_later || !p->memory || !p->program.not_written)
        status = tfm__drive_no_memory(err);
    if (status == TFM_STATUS_OK)
        status = copy_weights(p, data, err);
    if (status == TFM_STATUS_OK)
        status = ask_support(p, err);
    if (status == TFM_STATUS_OK)
        status = compile(p, err);
    if (status == TFM_STATUS_OK)
        status = tfm__drive_memory_open(p, err);
    if (status == TFM_STATUS_OK)
        status = open_exec(p, err);
    if (status == TFM_STATUS_OK)
        status = run_rows(p, &none, err);
    if (status == TFM_STATUS_OK)
        *plan = p;
    else
        tfm__drive_plan_close(p);
    return status;
}

void tfm__drive_plan_close(struct tfm__drive_plan *plan)
{
    if (!plan)
        return;
    const struct tfm__drive_backend *b = plan->backend;
    if (plan->exec)
        b->table->exec_close(plan->exec);
    if (plan->compiled)
        b->table->release(b->device, &plan->program);
    if (plan->weights.destroy)
        plan->weights.destroy(plan->weights.private_data);
    tfm__drive_memory_close(plan);
    for (uint32_t i = 0; i < plan->n_tensors && plan->allocation; i++)
        free(plan->allocation[i]);
    free(plan->home);
    free(plan->offset);
    free(plan->weight);
    free(plan->allocation);
    free(plan->nodes);
    free(plan->tensors);
    free(plan->index);
    free(plan->read_later);
    free(plan->memory);
    free(plan->program.not_written);
    free(plan);
}

/* ---- one run ---- */

/* A copy whose arrays end where they must, so that a sanitizer sees one read too many. */
static int32_t *copy_numbers(const int32_t *numbers, uint32_t n)
{
    int32_t *copy = malloc(n ? n * sizeof *copy : 1);
    if (copy && n)
        memcpy(copy, numbers, n * sizeof *copy);
    return copy;
}

static enum tfm_status run_with_copies(const struct tfm__drive_plan *plan,
                                       const struct tfm_rows *rows, struct tfm_error *err)
{
    int32_t *slot = copy_numbers(rows->slot, rows->n_seq);
    int32_t *start = copy_numbers(rows->start, rows->n_seq);
    int32_t *past = copy_numbers(rows->past, rows->n_seq);
    int32_t *out = copy_numbers(rows->out, rows->n_out);
    enum tfm_status status;

    if (slot && start && past && out) {
        const struct tfm_rows copy = {rows->n, rows->n_seq, rows->n_out, slot, start, past, out};
        const uint64_t before = tfm__drive_allocations();
        status = run_rows(plan, &copy, err);
        if (status == TFM_STATUS_OK && tfm__drive_allocations() != before)
            status = tfm_error_set(err, TFM_STATUS_INTERNAL,
                                   "%s allocated %llu times in a warm run", plan->backend->name,
                                   (unsigned long long)(tfm__drive_allocations() - before));
    } else {
        status = tfm__drive_no_memory(err);
    }
    free(slot);
    free(start);
    free(past);
    free(out);
    return status;
}

enum tfm_status tfm__drive_plan_run(struct tfm__drive_plan *plan, void *const *data,
                                    const struct tfm_rows *rows, struct tfm_error *err)
{
    enum tfm_status status = tfm__drive_memory_upload(plan, data, rows, err);
    if (status == TFM_STATUS_OK)
        status = run_with_copies(plan, rows, err);
    if (status == TFM_STATUS_OK)
        status = tfm__drive_memory_download(plan, data, rows, err);
    return status;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

enum tfm_status tfm__drive_plan_time(struct tfm__drive_plan *plan, const struct tfm_rows *rows,
                                     double seconds, double *nanoseconds, struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;
    const double begin = now();
    double best = 0;

    for (int i = 0; (i < 3 || now() - begin < 1e9 * seconds) && status == TFM_STATUS_OK; i++) {
        const double start = now();
        status = run_rows(plan, rows, err);
        const double took = now() - start;
        best = i == 0 || took < best ? took : best;
    }
    if (status == TFM_STATUS_OK)
        *nanoseconds = best;
    return status;
}
