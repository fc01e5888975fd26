/* SPDX-License-Identifier: MIT
 * The memory of a plan of the driver: guard zones, and what must not change in a run.
 *
 *   buffer of one kind (weights, activations, states):
 *   12345 12345 ... | tensor | 12345 ... | tensor | ... 12345      as f32, at least 64 between two */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/check/drive_plan.h"

enum { GUARD = 64 * 4 };

size_t tfm__drive_bytes(const struct tfm_tensor *tensor, int64_t outer)
{
    const struct tfm_dtype_info *info = tfm_dtype_info(tensor->dtype);
    return (size_t)(outer * tfm_tensor_row_elements(tensor)) / info->block * info->bytes;
}

static const struct tfm_tensor *root_of(const struct tfm_tensor *tensor)
{
    return tensor->view_of ? tensor->view_of : tensor;
}

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

static size_t element_bytes(const struct tfm__drive_plan *plan, const struct tfm_tensor *tensor)
{
    const struct tfm_dtype_info *info = tfm_dtype_info(tensor->dtype);
    if (!(plan->flags & TFM__DRIVE_ELEMENT_OFFSETS))
        return 0;
    return info->block > 1 ? 2 : info->bytes;
}

/* The tensor whose memory an output takes under TFM__DRIVE_IN_PLACE, or NULL. */
static const struct tfm_tensor *taken_by(const struct tfm__drive_plan *plan,
                                         const struct tfm_tensor *output)
{
    for (uint32_t i = 0; i < plan->n_nodes && plan->flags & TFM__DRIVE_IN_PLACE; i++) {
        const struct tfm_node *node = tfm_graph_node(plan->graph, i);
        const int32_t place = tfm_op_info(node->op)->in_place;
        if (node->outputs[0] == output && place >= 0 &&
            root_of(node->inputs[place])->kind == TFM_TENSOR_INPUT &&
            node->inputs[place]->dtype == output->dtype)
            return root_of(node->inputs[place]);
    }
    return NULL;
}

static int is_fused_away(const struct tfm__drive_plan *plan, uint32_t id)
{
    const int32_t i = plan->compiled ? plan->index[id] : -1;
    return i >= 0 && plan->program.not_written[i];
}

enum tfm_status tfm__drive_memory_open(struct tfm__drive_plan *plan, struct tfm_error *err)
{
    const struct tfm__drive_backend *b = plan->backend;
    size_t end[HOMES] = {0};

    for (uint32_t id = 0; id < plan->n_tensors; id++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(plan->graph, id);
        if (tensor->view_of || taken_by(plan, tensor) || is_fused_away(plan, id))
            continue;
        /* a backend in host memory reads weights where they are; a compiled one has its own copy */
        if (tfm__drive_is_weight(tensor))
            plan->home[id] = b->caps.host_memory || plan->compiled ? HOME_NONE : HOME_WEIGHTS;
        else
            plan->home[id] = tfm__drive_is_variable(tensor) ? HOME_STATE : HOME_ARENA;
        if (plan->home[id] != HOME_NONE)
            plan->offset[id] =
                reserve(&end[plan->home[id]],
                        tfm__drive_bytes(tensor, tfm_tensor_rows_most(tensor, &plan->capacity)),
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
            return tfm__drive_no_memory(err);
        const enum tfm_status status =
            b->table->alloc(b->device, region->bytes, &region->buffer, err);
        if (status != TFM_STATUS_OK)
            return status;
    }
    return TFM_STATUS_OK;
}

struct tfm_memory tfm__drive_memory_locate(const struct tfm__drive_plan *plan,
                                           const struct tfm_tensor *tensor)
{
    const struct tfm_tensor *root = tensor ? root_of(tensor) : NULL;
    struct tfm_memory memory = {NULL, 0};

    if (!root)
        return memory;
    if (plan->home[root->id] != HOME_NONE) {
        memory.buffer = plan->regions[plan->home[root->id]].buffer;
        memory.offset = plan->offset[root->id];
    } else if (tfm__drive_is_weight(root) && !plan->compiled) {
        memory.buffer = plan->weight[root->id];
    }
    return memory;
}

void tfm__drive_memory_close(struct tfm__drive_plan *plan)
{
    const struct tfm__drive_backend *b = plan->backend;

    for (int h = HOME_WEIGHTS; h < HOMES; h++) {
        if (plan->regions[h].buffer)
            b->table->free(b->device, plan->regions[h].buffer);
        free(plan->regions[h].image);
        free(plan->regions[h].expected);
    }
}

/* What every tensor holds before the run; 0xff is NaN in every float dtype and -1 in I32. */
static void write_images(const struct tfm__drive_plan *plan, void *const *data,
                         const struct tfm_rows *rows)
{
    for (int h = HOME_WEIGHTS; h < HOMES; h++)
        fill_guards(plan->regions[h].image, plan->regions[h].bytes);
    for (uint32_t id = 0; id < plan->n_tensors; id++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(plan->graph, id);
        if (plan->home[id] == HOME_NONE || taken_by(plan, tensor))
            continue;
        unsigned char *image = plan->regions[plan->home[id]].image + plan->offset[id];
        memset(image, 0xff,
               tfm__drive_bytes(tensor, tfm_tensor_rows_most(tensor, &plan->capacity)));
        if (tfm__drive_is_weight(tensor))
            memcpy(image, plan->weight[id], tfm__drive_bytes(tensor, tensor->shape[0]));
        else if (tensor->kind == TFM_TENSOR_INPUT || tfm__drive_is_variable(tensor))
            memcpy(image, data[id], tfm__drive_bytes(tensor, tfm_tensor_rows(tensor, rows)));
    }
    memset(plan->regions[HOME_ARENA].image + plan->workspace_offset, 0xff, plan->program.workspace);
    for (int h = HOME_WEIGHTS; h < HOMES; h++)
        memcpy(plan->regions[h].expected, plan->regions[h].image, plan->regions[h].bytes);
}

/* After the run the bytes that it may have written are taken over; all others must be as before. */
static void accept_writes(const struct tfm__drive_plan *plan)
{
    struct region *arena = (struct region *)&plan->regions[HOME_ARENA];

    for (uint32_t id = 0; id < plan->n_tensors; id++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(plan->graph, id);
        if (plan->home[id] == HOME_NONE || tfm__drive_is_weight(tensor) ||
            tensor->kind == TFM_TENSOR_INPUT)
            continue;
        const struct region *region = &plan->regions[plan->home[id]];
        memcpy(region->expected + plan->offset[id], region->image + plan->offset[id],
               tfm__drive_bytes(tensor, tfm_tensor_rows_most(tensor, &plan->capacity)));
    }
    memcpy(arena->expected + plan->workspace_offset, arena->image + plan->workspace_offset,
           plan->program.workspace);
}

/* Names the tensor nearest to a byte that should not have changed. */
static enum tfm_status blame(const struct tfm__drive_plan *plan, int home, size_t at,
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
    char where[80] = "";
    const long long size =
        nearest
            ? (long long)tfm__drive_bytes(nearest, tfm_tensor_rows_most(nearest, &plan->capacity))
            : 0;
    if (nearest && distance >= size)
        snprintf(where, sizeof where, ", %lld past its end", distance - size);
    return tfm_error_set(err, TFM_STATUS_INTERNAL,
                         "%s changed memory that is not its output: byte %zu, %lld from the first "
                         "of '%s'%s",
                         plan->backend->name, at, distance, nearest ? nearest->name : "?", where);
}

static enum tfm_status transfer(const struct tfm__drive_plan *plan, int down, struct tfm_error *err)
{
    const struct tfm__drive_backend *b = plan->backend;
    enum tfm_status status = TFM_STATUS_OK;

    for (int h = HOME_WEIGHTS; h < HOMES && status == TFM_STATUS_OK; h++) {
        const struct region *region = &plan->regions[h];
        const struct tfm_memory memory = {region->buffer, 0};
        status = down ? b->table->download(b->device, memory, region->image, region->bytes, err)
                      : b->table->upload(b->device, region->image, memory, region->bytes, err);
    }
    return status;
}

enum tfm_status tfm__drive_memory_upload(struct tfm__drive_plan *plan, void *const *data,
                                         const struct tfm_rows *rows, struct tfm_error *err)
{
    write_images(plan, data, rows);
    return transfer(plan, 0, err);
}

enum tfm_status tfm__drive_memory_download(struct tfm__drive_plan *plan, void *const *data,
                                           const struct tfm_rows *rows, struct tfm_error *err)
{
    const enum tfm_status status = transfer(plan, 1, err);
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
            (tensor->kind != TFM_TENSOR_OUTPUT && !tfm__drive_is_variable(tensor)))
            continue;
        memcpy(data[id], plan->regions[plan->home[id]].image + plan->offset[id],
               tfm__drive_bytes(tensor, tfm_tensor_rows(tensor, rows)));
    }
    return TFM_STATUS_OK;
}
