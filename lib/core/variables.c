/* SPDX-License-Identifier: MIT
 * The variables of an exec, states and trainable parameters: memory of its own or shared with another exec,
 * and the caller's way to read and write them. */
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

/* ---- own memory ---- */

static enum tfm_status make_zeroed(const struct tfm_device *device, size_t bytes, void **buffer,
                                   struct tfm_error *err)
{
    const struct tfm_backend *table = tfm__device_table(device);
    void *handle = tfm__device_handle(device);
    const size_t chunk = bytes < ((size_t)1 << 20) ? bytes : (size_t)1 << 20;
    void *made = NULL;

    if (table->alloc_zeroed)
        return table->alloc_zeroed(handle, bytes, buffer, err);
    void *zeros = tfm__alloc(chunk);
    if (!zeros)
        return no_memory(err);
    enum tfm_status status = table->alloc(handle, bytes, &made, err);
    for (size_t at = 0; status == TFM_STATUS_OK && at < bytes; at += chunk)
        status = table->upload(handle, zeros, offset_memory(made, at),
                               bytes - at < chunk ? bytes - at : chunk, err);
    tfm__free(zeros);
    if (status != TFM_STATUS_OK && made)
        table->free(handle, made);
    if (status == TFM_STATUS_OK)
        *buffer = made;
    return status;
}

/* A variable of `device` that the other exec does not have: its buffer is yet to be made. */
static int is_own(const struct tfm_exec *exec, uint32_t s, uint32_t device)
{
    return exec->plan->states[s].device == device && !exec->states[s].buffer;
}

/* Own variables [first, end) of `device` get one buffer; offsets are set already. */
static enum tfm_status make_state_buffer(struct tfm_exec *exec, uint32_t device, uint32_t first,
                                         uint32_t end, size_t bytes, struct tfm_error *err)
{
    const struct tfm_plan *plan = exec->plan;
    void *memory = NULL;

    if (bytes == 0)
        return TFM_STATUS_OK;
    struct tfm__state_buffer *made = tfm__alloc(sizeof *made);
    if (!made)
        return no_memory(err);
    const enum tfm_status status = make_zeroed(plan->devices[device], bytes, &memory, err);
    if (status != TFM_STATUS_OK) {
        tfm__free(made);
        return status;
    }
    atomic_init(&made->holders, 1);
    made->device = tfm_device_retain(plan->devices[device]);
    made->memory = memory;
    exec->buffers[exec->n_buffers++] = made;
    for (uint32_t s = first; s < end; s++) {
        if (is_own(exec, s, device))
            exec->states[s].buffer = memory;
    }
    return TFM_STATUS_OK;
}

/* The variables of a device lie in one buffer, so that a kernel that reads all caches has one argument for
 * them; where a device limits a buffer, in as few as it allows. */
static enum tfm_status make_states(struct tfm_exec *exec, uint32_t device, struct tfm_error *err)
{
    const struct tfm_plan *plan = exec->plan;
    const size_t most = tfm__device_caps(plan->devices[device])->max_alloc;
    uint32_t first = 0;
    size_t used = 0;

    for (uint32_t s = 0; s < plan->n_states; s++) {
        const size_t bytes = plan->states[s].bytes;
        size_t at, end;
        if (!is_own(exec, s, device))
            continue;
        if (tfm__align_size(used, TFM_ALIGNMENT, &at) || tfm__add_size(at, bytes, &end))
            return no_memory(err);
        if (used && most && end > most) {
            const enum tfm_status status = make_state_buffer(exec, device, first, s, used, err);
            if (status != TFM_STATUS_OK)
                return status;
            first = s;
            at = 0;
            end = bytes;
        }
        exec->states[s].offset = at;
        used = end;
    }
    return make_state_buffer(exec, device, first, plan->n_states, used, err);
}

/* Trainable parameters begin with the values that the weights hold. */
static enum tfm_status fill(struct tfm_exec *exec, uint32_t s, struct tfm_error *err)
{
    const struct tfm__state *state = &exec->plan->states[s];
    const struct tfm_device *device = exec->plan->devices[state->device];
    struct tfm_weight weight;

    enum tfm_status status = tfm__weights_values(exec->plan->weights, state->tensor, &weight, err);
    if (status == TFM_STATUS_OK)
        status = tfm__device_table(device)->upload(tfm__device_handle(device), weight.data,
                                                   exec->states[s], weight.bytes, err);
    if (status == TFM_STATUS_OK)
        tfm__weights_host_taken(exec->plan->weights, state->tensor);
    return status;
}

/* ---- memory of another exec ---- */

static const char *kind_of(const struct tfm_tensor *tensor)
{
    return tensor->is_trainable ? "trainable parameter" : "state";
}

/* Takes the memory of variable o of `other` for variable s. */
static enum tfm_status share(struct tfm_exec *exec, uint32_t s, const struct tfm_exec *other,
                             uint32_t o, struct tfm_error *err)
{
    const struct tfm__state *a = &exec->plan->states[s], *b = &other->plan->states[o];
    struct tfm__shape_text here, there;

    if (a->tensor->dtype != b->tensor->dtype || a->tensor->rank != b->tensor->rank ||
        a->tensor->is_trainable != b->tensor->is_trainable ||
        memcmp(a->tensor->shape, b->tensor->shape, sizeof a->tensor->shape) != 0)
        return tfm_error_set(
            err, TFM_STATUS_INVALID_ARGUMENT,
            "exec: %s \"%s\" %s %s cannot share the memory of %s %s %s of the other "
            "exec; give one of them another name",
            kind_of(a->tensor), a->tensor->name, tfm_dtype_name(a->tensor->dtype),
            tfm__shape_format(a->tensor, &here), kind_of(b->tensor),
            tfm_dtype_name(b->tensor->dtype), tfm__shape_format(b->tensor, &there));
    if (exec->plan->devices[a->device] != other->plan->devices[b->device])
        return tfm_error_set(
            err, TFM_STATUS_UNSUPPORTED,
            "exec: %s \"%s\" is used on %s here and on %s by the other exec; it can "
            "live on one device",
            kind_of(a->tensor), a->tensor->name, tfm_device_backend(exec->plan->devices[a->device]),
            tfm_device_backend(other->plan->devices[b->device]));
    exec->states[s] = other->states[o];
    for (uint32_t i = 0; i < exec->n_buffers; i++) {
        if (exec->buffers[i]->memory == exec->states[s].buffer)
            return TFM_STATUS_OK;
    }
    for (uint32_t i = 0; i < other->n_buffers; i++) {
        struct tfm__state_buffer *buffer = other->buffers[i];
        if (buffer->memory != exec->states[s].buffer)
            continue;
        atomic_fetch_add(&buffer->holders, 1);
        exec->buffers[exec->n_buffers++] = buffer;
    }
    return TFM_STATUS_OK;
}

/* A parameter that is frozen here would keep the values of the weights while the other exec trains it. */
static enum tfm_status check_frozen(const struct tfm_plan *plan, const struct tfm_exec *other,
                                    struct tfm_error *err)
{
    for (uint32_t o = 0; o < other->plan->n_states; o++) {
        const struct tfm_tensor *trained = other->plan->states[o].tensor;
        const struct tfm_tensor *here = tfm_graph_find(plan->graph, trained->name);
        if (trained->is_trainable && here && !here->is_trainable)
            return tfm_error_set(
                err, TFM_STATUS_INVALID_ARGUMENT,
                "exec: \"%s\" is trained by the other exec and frozen in this graph; "
                "mark it trainable here too (tfm_graph_train)",
                trained->name);
    }
    return TFM_STATUS_OK;
}

enum tfm_status tfm__exec_make_variables(struct tfm_exec *exec, const struct tfm_exec *other,
                                         struct tfm_error *err)
{
    const struct tfm_plan *plan = exec->plan;
    enum tfm_status status = other ? check_frozen(plan, other, err) : TFM_STATUS_OK;
    unsigned char *own = tfm__alloc(plan->n_states + 1);

    if (!own)
        return no_memory(err);
    for (uint32_t s = 0; s < plan->n_states && status == TFM_STATUS_OK; s++) {
        uint32_t o = 0;
        while (other && o < other->plan->n_states &&
               strcmp(other->plan->states[o].tensor->name, plan->states[s].tensor->name) != 0)
            o++;
        own[s] = !other || o == other->plan->n_states;
        if (!own[s])
            status = share(exec, s, other, o, err);
    }
    for (uint32_t d = 0; d < plan->n_devices && status == TFM_STATUS_OK; d++)
        status = make_states(exec, d, err);
    for (uint32_t s = 0; s < plan->n_states && status == TFM_STATUS_OK; s++) {
        if (own[s] && plan->states[s].tensor->is_trainable)
            status = fill(exec, s, err);
    }
    tfm__free(own);
    return status;
}

void tfm__exec_drop_variables(struct tfm_exec *exec)
{
    for (uint32_t b = 0; b < exec->n_buffers; b++) {
        struct tfm__state_buffer *buffer = exec->buffers[b];
        if (atomic_fetch_sub(&buffer->holders, 1) != 1)
            continue;
        tfm__device_table(buffer->device)->free(tfm__device_handle(buffer->device), buffer->memory);
        tfm_device_release(buffer->device);
        tfm__free(buffer);
    }
    exec->n_buffers = 0;
}

/* ---- for the caller ---- */

static enum tfm_status find_state(const struct tfm_exec *exec, const char *name, size_t bytes,
                                  uint32_t *index, struct tfm_error *err)
{
    const struct tfm_plan *plan = exec->plan;

    tfm_error_clear(err);
    for (uint32_t s = 0; s < plan->n_states; s++) {
        if (strcmp(plan->states[s].tensor->name, name) != 0)
            continue;
        if (bytes != plan->states[s].bytes)
            return tfm_error_set(
                err, TFM_STATUS_INVALID_ARGUMENT, "%s \"%s\" has %zu bytes, not %zu",
                kind_of(plan->states[s].tensor), name, plan->states[s].bytes, bytes);
        *index = s;
        return TFM_STATUS_OK;
    }
    return tfm_error_set(err, TFM_STATUS_NOT_FOUND,
                         "the plan has no state or trainable parameter \"%s\"", name);
}

enum tfm_status tfm_exec_state_read(struct tfm_exec *exec, const char *name, void *memory,
                                    size_t bytes, struct tfm_error *err)
{
    uint32_t s = 0;
    const enum tfm_status status = find_state(exec, name, bytes, &s, err);
    if (status != TFM_STATUS_OK)
        return status;
    struct tfm_device *device = exec->plan->devices[exec->plan->states[s].device];
    return tfm__device_table(device)->download(tfm__device_handle(device), exec->states[s], memory,
                                               bytes, err);
}

enum tfm_status tfm_exec_state_write(struct tfm_exec *exec, const char *name, const void *memory,
                                     size_t bytes, struct tfm_error *err)
{
    uint32_t s = 0;
    const enum tfm_status status = find_state(exec, name, bytes, &s, err);
    if (status != TFM_STATUS_OK)
        return status;
    struct tfm_device *device = exec->plan->devices[exec->plan->states[s].device];
    return tfm__device_table(device)->upload(tfm__device_handle(device), memory, exec->states[s],
                                             bytes, err);
}
