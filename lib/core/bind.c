/* SPDX-License-Identifier: MIT
 * Inputs and outputs of an exec: where the caller has them, and how they come there. */
#include "lib/core/alloc.h"
#include "lib/core/checked.h"
#include "lib/core/exec.h"
#include "lib/core/interop.h"
#include "lib/core/values.h"

static enum tfm_status no_memory(struct tfm_error *err)
{
    return tfm_error_set(err, TFM_STATUS_NOMEM, "bind: out of memory");
}

static int on_device(const struct tfm_plan *plan, uint32_t device, const struct tfm_tensor *tensor)
{
    return tfm__plan_place(plan, device, tensor)->home == TFM__HOME_ARENA;
}

/* ---- binding ---- */

/* An input or output and the bytes that it has at full capacity. */
static enum tfm_status find(const struct tfm_exec *exec, const char *name,
                            const struct tfm_tensor **found, size_t *needed, struct tfm_error *err)
{
    const struct tfm_tensor *tensor = tfm_graph_find(exec->plan->graph, name);

    if (!tensor || (tensor->kind != TFM_TENSOR_INPUT && tensor->kind != TFM_TENSOR_OUTPUT))
        return tfm_error_set(err, TFM_STATUS_NOT_FOUND,
                             "bind: the graph has no input or output \"%s\"", name);
    if (tfm__tensor_bytes(tensor, tfm_tensor_rows_most(tensor, &exec->plan->capacity), needed))
        return tfm_error_set(err, TFM_STATUS_NOMEM, "bind \"%s\": it is too large", name);
    *found = tensor;
    return TFM_STATUS_OK;
}

static enum tfm_status too_small(const struct tfm_exec *exec, const struct tfm_tensor *tensor,
                                 size_t bytes, size_t needed, struct tfm_error *err)
{
    struct tfm__shape_text shape;
    return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                         "bind \"%s\" %s %s: %zu bytes given, %zu needed for %lld rows",
                         tensor->name, tfm__shape_format(tensor, &shape),
                         tfm_dtype_name(tensor->dtype), bytes, needed,
                         (long long)tfm_tensor_rows_most(tensor, &exec->plan->capacity));
}

static void release(const struct tfm_exec *exec, struct tfm__binding *binding)
{
    if (binding->region.buffer) {
        const struct tfm_device *device = exec->plan->devices[binding->device];
        tfm__device_table(device)->free(tfm__device_handle(device), binding->region.buffer);
    }
    tfm__free(binding->staging);
    *binding = (struct tfm__binding){0};
}

void tfm__exec_unbind_all(struct tfm_exec *exec)
{
    for (uint32_t t = 0; exec->bindings && t < exec->plan->n_tensors; t++)
        release(exec, &exec->bindings[t]);
}

/* Takes over `fresh`, also when it fails. */
static enum tfm_status replace(struct tfm_exec *exec, const struct tfm_tensor *tensor,
                               struct tfm__binding *fresh, struct tfm_error *err)
{
    struct tfm__binding *at = &exec->bindings[tensor->id];
    struct tfm__binding old = *at;
    enum tfm_status status = TFM_STATUS_OK;

    *at = *fresh;
    if (old.direct || fresh->direct)
        status = tfm__exec_reopen(exec, tensor, err);
    if (status == TFM_STATUS_OK) {
        release(exec, &old);
        return TFM_STATUS_OK;
    }
    *at = old;
    release(exec, fresh);
    tfm_error_prefix(err, "bind \"%s\"", tensor->name);
    return status;
}

enum tfm_status tfm_exec_bind(struct tfm_exec *exec, const char *name, void *memory, size_t bytes,
                              struct tfm_error *err)
{
    const struct tfm_tensor *tensor = NULL;
    size_t needed = 0;

    tfm_error_clear(err);
    const enum tfm_status status = find(exec, name, &tensor, &needed, err);
    if (status != TFM_STATUS_OK)
        return status;
    if (bytes < needed || !memory)
        return too_small(exec, tensor, memory ? bytes : 0, needed, err);
    struct tfm__binding fresh = {.memory = memory, .bytes = needed};
    return replace(exec, tensor, &fresh, err);
}

enum tfm_status tfm_exec_unbind(struct tfm_exec *exec, const char *name, struct tfm_error *err)
{
    const struct tfm_tensor *tensor = NULL;
    struct tfm__binding none = {0};
    size_t needed = 0;

    tfm_error_clear(err);
    const enum tfm_status status = find(exec, name, &tensor, &needed, err);
    return status == TFM_STATUS_OK ? replace(exec, tensor, &none, err) : status;
}

/* ---- binding memory of a device ---- */

static int is_index(const struct tfm_tensor *tensor)
{
    return tensor->dtype == TFM_DTYPE_I32 && tensor->limit != 0;
}

static int is_read(const struct tfm_plan *plan, const struct tfm_tensor *root)
{
    for (uint32_t n = 0; n < plan->n_nodes; n++) {
        const struct tfm_node *node = tfm_graph_node(plan->graph, n);
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            if (node->inputs[k] && tfm__tensor_root(node->inputs[k]) == root)
                return 1;
        }
    }
    return 0;
}

/* What the plan does with a region of `device` that the tensor is bound to. */
static uint32_t plan_access(const struct tfm_plan *plan, const struct tfm_tensor *tensor,
                            uint32_t device, int *direct)
{
    int elsewhere = 0;

    for (uint32_t d = 0; d < plan->n_devices; d++)
        elsewhere |= d != device && on_device(plan, d, tensor);
    if (tensor->kind == TFM_TENSOR_INPUT) {
        *direct = on_device(plan, device, tensor) && !is_index(tensor);
        return (*direct ? TFM_ACCESS_READ : 0u) |
               (elsewhere || is_index(tensor) ? TFM_ACCESS_HOST_READ : 0u);
    }
    *direct = plan->maker[tensor->id] == (int32_t)device;
    if (!*direct)
        return TFM_ACCESS_HOST_WRITE;
    return TFM_ACCESS_WRITE | (is_read(plan, tensor) ? TFM_ACCESS_READ : 0u) |
           (elsewhere ? TFM_ACCESS_HOST_READ : 0u);
}

/* Offers the memory to the devices of the plan that have the extension, those that use the tensor first;
 * the first that takes it has it. */
static enum tfm_status take(const struct tfm_plan *plan, const struct tfm_tensor *tensor,
                            const char *extension, struct tfm_memory memory, size_t bytes,
                            struct tfm__binding *binding, struct tfm_error *err)
{
    enum tfm_status first = TFM_STATUS_OK;

    for (int user = 1; user >= 0; user--) {
        for (uint32_t d = 0; d < plan->n_devices; d++) {
            const struct tfm_backend *table = tfm__device_table(plan->devices[d]);
            void *handle = tfm__device_handle(plan->devices[d]);
            const struct tfm_interop *interop = tfm__interop(table, handle, extension);
            if (!interop || on_device(plan, d, tensor) != user)
                continue;
            const uint32_t access = plan_access(plan, tensor, d, &binding->direct);
            const enum tfm_status status =
                interop->take(handle, memory, bytes, access, &binding->storage, err);
            if (status == TFM_STATUS_OK) {
                tfm_error_clear(err); /* what another device said */
                binding->region = memory;
                binding->device = d;
                return TFM_STATUS_OK;
            }
            first = first == TFM_STATUS_OK ? status : first;
        }
    }
    if (first != TFM_STATUS_OK)
        return tfm_error_set(err, first, "the memory was refused: %s", tfm_status_text(first));
    return tfm_error_set(err, TFM_STATUS_UNSUPPORTED,
                         "the plan runs on %s%s, which takes no memory of \"%s\"; compile it for a "
                         "device that does",
                         tfm_device_backend(plan->devices[0]),
                         plan->n_devices > 1 ? " and others, none of" : "", extension);
}

/* An output in the place of another tensor would be written while that one is still read. */
static enum tfm_status check_overlap(const struct tfm_exec *exec, const struct tfm_tensor *tensor,
                                     const struct tfm__binding *binding, struct tfm_error *err)
{
    for (uint32_t t = 0; t < exec->plan->n_tensors; t++) {
        const struct tfm__binding *b = &exec->bindings[t];
        const struct tfm_tensor *other = tfm_graph_tensor(exec->plan->graph, t);
        if (other == tensor || !b->region.buffer || b->storage.storage != binding->storage.storage)
            continue;
        const size_t from = b->storage.at, to = binding->storage.at;
        if (from < to ? to - from >= b->bytes : from - to >= binding->bytes)
            continue;
        if (other->kind == TFM_TENSOR_OUTPUT || tensor->kind == TFM_TENSOR_OUTPUT)
            return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                                 "bytes [%zu, %zu) overlap [%zu, %zu) of the same buffer, to which "
                                 "\"%s\" is bound; an output needs bytes of its own",
                                 to, to + binding->bytes, from, from + b->bytes, other->name);
    }
    return TFM_STATUS_OK;
}

/* Checks the region, takes it and makes what it needs; fills in `binding`. */
static enum tfm_status bind_region(const struct tfm_exec *exec, const struct tfm_tensor *tensor,
                                   const char *extension, struct tfm_memory memory, size_t bytes,
                                   struct tfm__binding *binding, struct tfm_error *err)
{
    const struct tfm_dtype_info *info = tfm_dtype_info(tensor->dtype);
    const size_t align = info->block == 1 ? info->bytes : sizeof(uint16_t); /* f16 in blocks */
    int direct = 0;

    if (memory.offset % align)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "offset %zu is no multiple of the %zu bytes that a value of %s needs",
                             memory.offset, align, info->name);
    enum tfm_status status = take(exec->plan, tensor, extension, memory, bytes, binding, err);
    if (status == TFM_STATUS_OK)
        status = check_overlap(exec, tensor, binding, err);
    if (status != TFM_STATUS_OK)
        return status;
    const uint32_t access = plan_access(exec->plan, tensor, binding->device, &direct);
    const int staged = tensor->kind == TFM_TENSOR_INPUT ? (access & TFM_ACCESS_HOST_READ) != 0
                                                        : (access & TFM_ACCESS_HOST_WRITE) != 0;
    if (!staged)
        return TFM_STATUS_OK;
    binding->memory = binding->staging = tfm__alloc(binding->bytes);
    return binding->staging ? TFM_STATUS_OK : no_memory(err);
}

enum tfm_status tfm_exec_bind_memory(struct tfm_exec *exec, const char *name, const char *extension,
                                     struct tfm_memory memory, size_t bytes, struct tfm_error *err)
{
    const struct tfm_tensor *tensor = NULL;
    struct tfm__binding fresh = {0};

    tfm_error_clear(err);
    enum tfm_status status = find(exec, name, &tensor, &fresh.bytes, err);
    if (status != TFM_STATUS_OK)
        return status;
    if (bytes < fresh.bytes)
        return too_small(exec, tensor, bytes, fresh.bytes, err);
    status = bind_region(exec, tensor, extension, memory, bytes, &fresh, err);
    if (status == TFM_STATUS_OK)
        return replace(exec, tensor, &fresh, err);
    release(exec, &fresh);
    tfm_error_prefix(err, "bind \"%s\"", name);
    return status;
}

enum tfm_status tfm_exec_memory(const struct tfm_exec *exec, const char *name,
                                const char *extension, struct tfm_memory *memory, size_t *bytes,
                                struct tfm_error *err)
{
    const struct tfm_plan *plan = exec->plan;
    const struct tfm_tensor *tensor = tfm_graph_find(plan->graph, name);

    tfm_error_clear(err);
    if (!tensor || tensor->kind != TFM_TENSOR_OUTPUT)
        return tfm_error_set(err, TFM_STATUS_NOT_FOUND, "the graph has no output \"%s\"", name);
    const uint32_t d = (uint32_t)plan->maker[tensor->id];
    const struct tfm_device *device = plan->devices[d];
    if (!tfm__interop(tfm__device_table(device), tfm__device_handle(device), extension))
        return tfm_error_set(err, TFM_STATUS_UNSUPPORTED,
                             "output \"%s\" is made on %s, which has no \"%s\"", name,
                             tfm_device_backend(device), extension);
    *memory = tfm__exec_locate(exec, d, tensor);
    *bytes = tfm__plan_place(plan, d, tensor)->bytes;
    return TFM_STATUS_OK;
}

/* ---- in a run ---- */

size_t tfm__exec_run_bytes(const struct tfm_tensor *tensor, const struct tfm_rows *rows)
{
    size_t bytes = 0;
    /* cannot overflow: the same at full capacity did not */
    (void)tfm__tensor_bytes(tensor, tfm_tensor_rows(tensor, rows), &bytes);
    return bytes;
}

static enum tfm_status download(const struct tfm_plan *plan, uint32_t device,
                                struct tfm_memory from, void *to, size_t bytes,
                                struct tfm_error *err)
{
    return tfm__device_table(plan->devices[device])
        ->download(tfm__device_handle(plan->devices[device]), from, to, bytes, err);
}

static enum tfm_status upload(const struct tfm_plan *plan, uint32_t device, const void *from,
                              struct tfm_memory to, size_t bytes, struct tfm_error *err)
{
    return tfm__device_table(plan->devices[device])
        ->upload(tfm__device_handle(plan->devices[device]), from, to, bytes, err);
}

/* What is checked is what kernels read: of a region, the copy. */
static enum tfm_status check_input(const struct tfm_exec *exec, const struct tfm_tensor *tensor,
                                   const struct tfm_rows *rows, struct tfm_error *err)
{
    const struct tfm__binding *b = &exec->bindings[tensor->id];
    const size_t bytes = tfm__exec_run_bytes(tensor, rows);

    if (!b->memory && !b->region.buffer)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT, "input \"%s\" is not bound",
                             tensor->name);
    if (b->staging && bytes) {
        const enum tfm_status status =
            download(exec->plan, b->device, b->region, b->staging, bytes, err);
        if (status != TFM_STATUS_OK)
            return status;
    }
    return tfm__values_check_for(exec->plan->graph, tensor, b->memory,
                                 tfm_tensor_rows(tensor, rows) * tfm_tensor_row_elements(tensor),
                                 err);
}

enum tfm_status tfm__exec_check_inputs(struct tfm_exec *exec, const struct tfm_rows *rows,
                                       struct tfm_error *err)
{
    const struct tfm_plan *plan = exec->plan;
    enum tfm_status status = tfm__rows_check(rows, &plan->capacity, &plan->needs, err);

    for (uint32_t t = 0; t < plan->n_tensors && status == TFM_STATUS_OK; t++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(plan->graph, t);
        if (tensor->kind == TFM_TENSOR_INPUT && !tensor->view_of)
            status = check_input(exec, tensor, rows, err);
    }
    return status;
}

enum tfm_status tfm__exec_move_inputs(struct tfm_exec *exec, const struct tfm_rows *rows,
                                      struct tfm_error *err)
{
    const struct tfm_plan *plan = exec->plan;

    for (uint32_t t = 0; t < plan->n_tensors; t++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(plan->graph, t);
        const struct tfm__binding *b = &exec->bindings[t];
        if (tensor->kind != TFM_TENSOR_INPUT || tensor->view_of)
            continue;
        const size_t bytes = tfm__exec_run_bytes(tensor, rows);
        for (uint32_t d = 0; d < plan->n_devices && bytes; d++) {
            if (!on_device(plan, d, tensor) || (b->direct && b->device == d))
                continue;
            const enum tfm_status status =
                upload(plan, d, b->memory, tfm__exec_locate(exec, d, tensor), bytes, err);
            if (status != TFM_STATUS_OK)
                return status;
        }
    }
    return TFM_STATUS_OK;
}

enum tfm_status tfm__exec_move_outputs(struct tfm_exec *exec, const struct tfm_rows *rows,
                                       struct tfm_error *err)
{
    const struct tfm_plan *plan = exec->plan;

    for (uint32_t t = 0; t < plan->n_tensors; t++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(plan->graph, t);
        const struct tfm__binding *b = &exec->bindings[t];
        const size_t bytes = tfm__exec_run_bytes(tensor, rows);
        if (tensor->kind != TFM_TENSOR_OUTPUT || tensor->view_of || !b->memory || !bytes)
            continue;
        const uint32_t d = (uint32_t)plan->maker[t];
        enum tfm_status status =
            download(plan, d, tfm__exec_locate(exec, d, tensor), b->memory, bytes, err);
        if (status == TFM_STATUS_OK && b->staging)
            status = upload(plan, b->device, b->staging, b->region, bytes, err);
        if (status != TFM_STATUS_OK)
            return status;
    }
    return TFM_STATUS_OK;
}
