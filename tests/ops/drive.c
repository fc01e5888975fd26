/* SPDX-License-Identifier: MIT
 * The driver: memory with guard zones, the two ways of the backend ABI, and what must hold after a
 * run.
 *
 *   buffer of one kind (weights, activations, states):
 *   12345 12345 ... | tensor | 12345 ... | tensor | ... 12345      as f32, at least 64 between two
 */
#include <stdlib.h>
#include <string.h>

#include "tests/ops/drive.h"
#include "tests/ops/drive_host.h"

enum { GUARD = 64 * 4 };

enum home { HOME_NONE, HOME_WEIGHTS, HOME_ARENA, HOME_STATE, HOMES };

struct region {
    void *buffer;
    size_t bytes;
    unsigned char *image; /* what was uploaded, then what came back */
    unsigned char *expected;
};

struct drive_plan {
    const struct drive_backend *backend;
    const struct tfm_graph *graph;
    struct tfm_capacity capacity;
    unsigned flags;
    uint32_t n_tensors, n_nodes;
    enum home *home;   /* [n_tensors], of roots */
    size_t *offset;    /* [n_tensors] in the buffer of its home */
    void **weight;     /* [n_tensors] copies of parameters and buffers at odd addresses */
    void **allocation; /* [n_tensors] what to free for them */
    struct region regions[HOMES];
    size_t workspace_offset;

    struct tfm_weights weights;
    struct tfm_segment segment;
    const struct tfm_node **nodes;
    const struct tfm_tensor **tensors;
    int32_t *index;
    uint8_t *read_later;
    struct tfm_memory *memory; /* [n_tensors of the segment] */
    struct tfm_program program;
    int compiled;
    void *exec;
};

size_t drive_bytes(const struct tfm_tensor *tensor, int64_t outer)
{
    const struct tfm_dtype_info *info = tfm_dtype_info(tensor->dtype);
    return (size_t)(outer * tfm_tensor_row_elements(tensor)) / info->block * info->bytes;
}

int64_t drive_outer(const struct tfm_tensor *tensor, const struct tfm_capacity *capacity)
{
    if (tensor->extent == TFM_EXTENT_ROWS)
        return capacity->rows;
    return tensor->extent == TFM_EXTENT_OUT_ROWS ? capacity->out_rows : tensor->shape[0];
}

static const struct tfm_tensor *root_of(const struct tfm_tensor *tensor)
{
    return tensor->view_of ? tensor->view_of : tensor;
}

static int is_weight(const struct tfm_tensor *tensor)
{
    return tensor->kind == TFM_TENSOR_PARAMETER || tensor->kind == TFM_TENSOR_BUFFER;
}

static enum tfm_status no_memory(struct tfm_error *err)
{
    return tfm_error_set(err, TFM_STATUS_NOMEM, "driver: out of memory");
}

/* ---- layout ---- */

static void fill_guards(unsigned char *memory, size_t bytes)
{
    static const float guard = 12345.0f;
    for (size_t i = 0; i < bytes; i++)
        memory[i] = ((const unsigned char *)&guard)[i % 4];
}

/* Room for `bytes` behind `end`, a guard zone before it; moves `end`. */
static size_t reserve(size_t *end, size_t bytes, size_t element)
{
    /* odd multiples of 128: no kernel may count on more */
    size_t offset =
        (*end + GUARD + 2 * TFM_ALIGNMENT - 1) / (2 * TFM_ALIGNMENT) * (2 * TFM_ALIGNMENT) +
        TFM_ALIGNMENT;
    if (element)
        offset += 3 * element;
    *end = offset + bytes;
    return offset;
}

static size_t element_bytes(const struct drive_plan *plan, const struct tfm_tensor *tensor)
{
    const struct tfm_dtype_info *info = tfm_dtype_info(tensor->dtype);
    if (!(plan->flags & DRIVE_ELEMENT_OFFSETS))
        return 0;
    return info->block > 1 ? 2 : info->bytes;
}

/* The tensor whose memory an output takes under DRIVE_IN_PLACE, or NULL. */
static const struct tfm_tensor *taken_by(const struct drive_plan *plan,
                                         const struct tfm_tensor *output)
{
    for (uint32_t i = 0; i < plan->n_nodes && plan->flags & DRIVE_IN_PLACE; i++) {
        const struct tfm_node *node = tfm_graph_node(plan->graph, i);
        const int32_t place = tfm_op_info(node->op)->in_place;
        if (node->outputs[0] == output && place >= 0 &&
            root_of(node->inputs[place])->kind == TFM_TENSOR_INPUT &&
            node->inputs[place]->dtype == output->dtype)
            return root_of(node->inputs[place]);
    }
    return NULL;
}

static int is_fused_away(const struct drive_plan *plan, uint32_t id)
{
    const int32_t i = plan->compiled ? plan->index[id] : -1;
    return i >= 0 && plan->program.not_written[i];
}

static enum tfm_status copy_weights(struct drive_plan *plan, void *const *data,
                                    struct tfm_error *err)
{
    for (uint32_t id = 0; id < plan->n_tensors; id++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(plan->graph, id);
        const size_t bytes = drive_bytes(tensor, tensor->shape[0]);
        if (!is_weight(tensor) || tensor->view_of)
            continue;
        plan->allocation[id] = malloc(bytes + 1);
        if (!plan->allocation[id])
            return no_memory(err);
        plan->weight[id] = (unsigned char *)plan->allocation[id] + 1;
        memcpy(plan->weight[id], data[id], bytes);
    }
    return TFM_STATUS_OK;
}

static enum tfm_status lay_out(struct drive_plan *plan, struct tfm_error *err)
{
    const struct drive_backend *b = plan->backend;
    size_t end[HOMES] = {0};

    for (uint32_t id = 0; id < plan->n_tensors; id++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(plan->graph, id);
        if (tensor->view_of || taken_by(plan, tensor) || is_fused_away(plan, id))
            continue;
        /* a backend in host memory reads weights where they are; a compiled one has its own copy */
        if (is_weight(tensor))
            plan->home[id] = b->caps.host_memory || plan->compiled ? HOME_NONE : HOME_WEIGHTS;
        else
            plan->home[id] = tensor->kind == TFM_TENSOR_STATE ? HOME_STATE : HOME_ARENA;
        if (plan->home[id] != HOME_NONE)
            plan->offset[id] = reserve(&end[plan->home[id]],
                                       drive_bytes(tensor, drive_outer(tensor, &plan->capacity)),
                                       element_bytes(plan, tensor));
    }
    for (uint32_t id = 0; id < plan->n_tensors; id++) {
        const struct tfm_tensor *from = taken_by(plan, tfm_graph_tensor(plan->graph, id));
        if (from) {
            plan->home[id] = plan->home[from->id];
            plan->offset[id] = plan->offset[from->id];
        }
    }
    plan->workspace_offset = reserve(&end[HOME_ARENA], plan->program.workspace, 0);
    for (int h = HOME_WEIGHTS; h < HOMES; h++) {
        struct region *region = &plan->regions[h];
        region->bytes = end[h] + GUARD;
        region->image = malloc(region->bytes);
        region->expected = malloc(region->bytes);
        if (!region->image || !region->expected)
            return no_memory(err);
        const enum tfm_status status =
            b->table->alloc(b->device, region->bytes, &region->buffer, err);
        if (status != TFM_STATUS_OK)
            return status;
    }
    return TFM_STATUS_OK;
}

static struct tfm_memory locate(const struct drive_plan *plan, const struct tfm_tensor *tensor)
{
    const struct tfm_tensor *root = tensor ? root_of(tensor) : NULL;
    struct tfm_memory memory = {NULL, 0};

    if (!root)
        return memory;
    if (plan->home[root->id] != HOME_NONE) {
        memory.buffer = plan->regions[plan->home[root->id]].buffer;
        memory.offset = plan->offset[root->id];
    } else if (is_weight(root) && !plan->compiled) {
        memory.buffer = plan->weight[root->id];
    }
    return memory;
}

/* ---- the backend's two ways ---- */

static void add_tensor(struct drive_plan *plan, const struct tfm_tensor *tensor)
{
    if (!tensor || plan->index[tensor->id] >= 0)
        return;
    plan->index[tensor->id] = (int32_t)plan->segment.n_tensors;
    plan->read_later[plan->segment.n_tensors] =
        tensor->kind == TFM_TENSOR_OUTPUT || tensor->kind == TFM_TENSOR_STATE;
    plan->tensors[plan->segment.n_tensors++] = tensor;
    add_tensor(plan, tensor->view_of);
}

static enum tfm_status compile(struct drive_plan *plan, struct tfm_error *err)
{
    const struct drive_backend *b = plan->backend;

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

static enum tfm_status run_nodes(const struct drive_plan *plan, const struct tfm_rows *rows,
                                 struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;

    for (uint32_t i = 0; i < plan->n_nodes && status == TFM_STATUS_OK; i++) {
        const struct tfm_node *node = plan->nodes[i];
        struct tfm_memory inputs[TFM_MAX_INPUTS], outputs[TFM_MAX_OUTPUTS];
        for (uint32_t k = 0; k < node->n_inputs; k++)
            inputs[k] = locate(plan, node->inputs[k]);
        for (uint32_t k = 0; k < node->n_outputs; k++)
            outputs[k] = locate(plan, node->outputs[k]);
        status =
            plan->backend->table->run_node(plan->backend->device, node, inputs, outputs, rows, err);
    }
    return status;
}

static enum tfm_status run_rows(const struct drive_plan *plan, const struct tfm_rows *rows,
                                struct tfm_error *err)
{
    drive_parallel_whole((plan->flags & DRIVE_WHOLE) != 0);
    if (plan->compiled)
        return plan->backend->table->exec_run(plan->exec, rows, err);
    return run_nodes(plan, rows, err);
}

static enum tfm_status open_exec(struct drive_plan *plan, struct tfm_error *err)
{
    const struct drive_backend *b = plan->backend;
    struct tfm_exec_memory memory = {.memory = plan->memory};

    for (uint32_t i = 0; i < plan->segment.n_tensors; i++)
        plan->memory[i] = locate(plan, plan->tensors[i]);
    if (!plan->compiled)
        return TFM_STATUS_OK;
    memory.workspace.buffer = plan->regions[HOME_ARENA].buffer;
    memory.workspace.offset = plan->workspace_offset;
    return b->table->exec_open(b->device, &plan->program, &memory, &plan->exec, err);
}

/* ---- opening and closing ---- */

static enum tfm_status ask_support(const struct drive_plan *plan, struct tfm_error *err)
{
    const struct drive_backend *b = plan->backend;

    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        const struct tfm_node *node = tfm_graph_node(plan->graph, i);
        char reason[256] = "";
        if (!b->table->supports(b->device, node, &plan->capacity, reason, sizeof reason))
            return tfm_error_set(err, TFM_STATUS_UNSUPPORTED, "%s refuses %s: %s", b->name,
                                 tfm_op_name(node->op), reason);
    }
    return TFM_STATUS_OK;
}

enum tfm_status drive_plan_open(const struct drive_backend *backend, const struct tfm_graph *graph,
                                void *const *data, const struct tfm_capacity *capacity,
                                unsigned flags, struct drive_plan **plan, struct tfm_error *err)
{
    static const struct tfm_rows none;
    const size_t n = tfm_graph_tensor_count(graph) + 1, nodes = tfm_graph_node_count(graph) + 1;
    struct drive_plan *p = calloc(1, sizeof *p);

    if (!p)
        return no_memory(err);
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
        status = no_memory(err);
    if (status == TFM_STATUS_OK)
        status = copy_weights(p, data, err);
    if (status == TFM_STATUS_OK)
        status = ask_support(p, err);
    if (status == TFM_STATUS_OK)
        status = compile(p, err);
    if (status == TFM_STATUS_OK)
        status = lay_out(p, err);
    if (status == TFM_STATUS_OK)
        status = open_exec(p, err);
    if (status == TFM_STATUS_OK)
        status = run_rows(p, &none, err);
    if (status == TFM_STATUS_OK)
        *plan = p;
    else
        drive_plan_close(p);
    return status;
}

void drive_plan_close(struct drive_plan *plan)
{
    if (!plan)
        return;
    const struct drive_backend *b = plan->backend;
    if (plan->exec)
        b->table->exec_close(plan->exec);
    if (plan->compiled)
        b->table->release(b->device, &plan->program);
    if (plan->weights.destroy)
        plan->weights.destroy(plan->weights.private_data);
    for (int h = HOME_WEIGHTS; h < HOMES; h++) {
        if (plan->regions[h].buffer)
            b->table->free(b->device, plan->regions[h].buffer);
        free(plan->regions[h].image);
        free(plan->regions[h].expected);
    }
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

/* What every tensor holds before the run; 0xff is NaN in every float dtype and -1 in I32. */
static void write_images(const struct drive_plan *plan, void *const *data,
                         const struct tfm_rows *rows)
{
    for (int h = HOME_WEIGHTS; h < HOMES; h++)
        fill_guards(plan->regions[h].image, plan->regions[h].bytes);
    for (uint32_t id = 0; id < plan->n_tensors; id++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(plan->graph, id);
        if (plan->home[id] == HOME_NONE || taken_by(plan, tensor))
            continue;
        unsigned char *image = plan->regions[plan->home[id]].image + plan->offset[id];
        memset(image, 0xff, drive_bytes(tensor, drive_outer(tensor, &plan->capacity)));
        if (is_weight(tensor))
            memcpy(image, plan->weight[id], drive_bytes(tensor, tensor->shape[0]));
        else if (tensor->kind == TFM_TENSOR_INPUT || tensor->kind == TFM_TENSOR_STATE)
            memcpy(image, data[id], drive_bytes(tensor, tfm_tensor_rows(tensor, rows)));
    }
    memset(plan->regions[HOME_ARENA].image + plan->workspace_offset, 0xff, plan->program.workspace);
    for (int h = HOME_WEIGHTS; h < HOMES; h++)
        memcpy(plan->regions[h].expected, plan->regions[h].image, plan->regions[h].bytes);
}

/* After the run the bytes that it may have written are taken over; all others must be as before. */
static void accept_writes(const struct drive_plan *plan)
{
    struct region *arena = (struct region *)&plan->regions[HOME_ARENA];

    for (uint32_t id = 0; id < plan->n_tensors; id++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(plan->graph, id);
        if (plan->home[id] == HOME_NONE || is_weight(tensor) || tensor->kind == TFM_TENSOR_INPUT)
            continue;
        const struct region *region = &plan->regions[plan->home[id]];
        memcpy(region->expected + plan->offset[id], region->image + plan->offset[id],
               drive_bytes(tensor, drive_outer(tensor, &plan->capacity)));
    }
    memcpy(arena->expected + plan->workspace_offset, arena->image + plan->workspace_offset,
           plan->program.workspace);
}

/* Names the tensor nearest to a byte that should not have changed. */
static enum tfm_status blame(const struct drive_plan *plan, int home, size_t at,
                             struct tfm_error *err)
{
    const struct tfm_tensor *nearest = NULL;
    long long distance = 0;

    for (uint32_t id = 0; id < plan->n_tensors; id++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(plan->graph, id);
        const long long d = (long long)at - (long long)plan->offset[id];
        if ((int)plan->home[id] == home && (!nearest || llabs(d) < llabs(distance))) {
            nearest = tensor;
            distance = d;
        }
    }
    return tfm_error_set(err, TFM_STATUS_INTERNAL,
                         "%s changed memory that is not its output: byte %zu, %lld from the first "
                         "of '%s'",
                         plan->backend->name, at, distance, nearest ? nearest->name : "?");
}

static enum tfm_status transfer(const struct drive_plan *plan, int down, struct tfm_error *err)
{
    const struct drive_backend *b = plan->backend;
    enum tfm_status status = TFM_STATUS_OK;

    for (int h = HOME_WEIGHTS; h < HOMES && status == TFM_STATUS_OK; h++) {
        const struct region *region = &plan->regions[h];
        const struct tfm_memory memory = {region->buffer, 0};
        status = down ? b->table->download(b->device, memory, region->image, region->bytes, err)
                      : b->table->upload(b->device, region->image, memory, region->bytes, err);
    }
    return status;
}

/* A copy whose arrays end where they must, so that a sanitizer sees one read too many. */
static int32_t *copy_numbers(const int32_t *numbers, uint32_t n)
{
    int32_t *copy = malloc(n ? n * sizeof *copy : 1);
    if (copy && n)
        memcpy(copy, numbers, n * sizeof *copy);
    return copy;
}

static enum tfm_status run_with_copies(const struct drive_plan *plan, const struct tfm_rows *rows,
                                       struct tfm_error *err)
{
    int32_t *slot = copy_numbers(rows->slot, rows->n_seq);
    int32_t *start = copy_numbers(rows->start, rows->n_seq);
    int32_t *past = copy_numbers(rows->past, rows->n_seq);
    int32_t *out = copy_numbers(rows->out, rows->n_out);
    enum tfm_status status;

    if (slot && start && past && out) {
        const struct tfm_rows copy = {rows->n, rows->n_seq, rows->n_out, slot, start, past, out};
        const uint64_t before = drive_allocations();
        status = run_rows(plan, &copy, err);
        if (status == TFM_STATUS_OK && drive_allocations() != before)
            status = tfm_error_set(err, TFM_STATUS_INTERNAL,
                                   "%s allocated %llu times in a warm run", plan->backend->name,
                                   (unsigned long long)(drive_allocations() - before));
    } else {
        status = no_memory(err);
    }
    free(slot);
    free(start);
    free(past);
    free(out);
    return status;
}

enum tfm_status drive_plan_run(struct drive_plan *plan, void *const *data,
                               const struct tfm_rows *rows, struct tfm_error *err)
{
    write_images(plan, data, rows);
    enum tfm_status status = transfer(plan, 0, err);
    if (status == TFM_STATUS_OK)
        status = run_with_copies(plan, rows, err);
    if (status == TFM_STATUS_OK)
        status = transfer(plan, 1, err);
    if (status != TFM_STATUS_OK)
        return status;
    accept_writes(plan);
    for (int h = HOME_WEIGHTS; h < HOMES; h++) {
        const struct region *region = &plan->regions[h];
        for (size_t i = 0; i < region->bytes; i++) {
            if (region->image[i] != region->expected[i])
                return blame(plan, h, i, err);
        }
    }
    for (uint32_t id = 0; id < plan->n_tensors; id++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(plan->graph, id);
        if (plan->home[id] == HOME_NONE || !data[id] ||
            (tensor->kind != TFM_TENSOR_OUTPUT && tensor->kind != TFM_TENSOR_STATE))
            continue;
        memcpy(data[id], plan->regions[plan->home[id]].image + plan->offset[id],
               drive_bytes(tensor, tfm_tensor_rows(tensor, rows)));
    }
    return TFM_STATUS_OK;
}
