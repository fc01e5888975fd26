/* SPDX-License-Identifier: MIT
 * See memory_backend.h. A buffer handle is a pointer to {bytes, size}, so a core that takes it for a host
 * address writes over the record and is found out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/core/memory_backend.h"

struct buffer {
    size_t size;
    unsigned holders;
    unsigned char *bytes;
};

struct memory_backend_control memory_backend_control;

static enum tfm_status probe(const struct tfm_host *host, const char *params,
                             struct tfm_probe *report, struct tfm_error *err)
{
    (void)host, (void)params, (void)err;
    report->usable = 1;
    report->score = 1;
    report->n_devices = 1;
    snprintf(report->devices[0].name, sizeof report->devices[0].name, "drawer");
    return TFM_STATUS_OK;
}

static enum tfm_status open_device(const struct tfm_host *host, uint32_t index, void **device,
                                   struct tfm_error *err)
{
    (void)index, (void)err;
    *device = (void *)(uintptr_t)host;
    return TFM_STATUS_OK;
}

static void close_device(void *device)
{
    (void)device;
}

static void caps(void *device, struct tfm_device_caps *c)
{
    (void)device;
    c->max_alloc = memory_backend_control.max_alloc;
    snprintf(c->description, sizeof c->description, "test memory");
}

static enum tfm_status alloc(void *device, size_t bytes, void **buffer, struct tfm_error *err)
{
    const struct tfm_host *host = device;
    struct buffer *b = malloc(sizeof *b);
    if (b)
        *b = (struct buffer){bytes, 1, malloc(bytes)};
    if (!b || !b->bytes)
        return host->error(err, TFM_STATUS_NOMEM, "memory: out of memory");
    memset(b->bytes, 0xff, bytes); /* NaN: what nobody wrote must not be read */
    if (bytes > memory_backend_control.largest)
        memory_backend_control.largest = bytes;
    memory_backend_control.live++;
    *buffer = b;
    return TFM_STATUS_OK;
}

static void free_buffer(void *device, void *buffer)
{
    struct buffer *b = buffer;
    (void)device;
    if (--b->holders)
        return;
    memory_backend_control.live--;
    free(b->bytes);
    free(b);
}

static enum tfm_status upload(void *device, const void *src, struct tfm_memory dst, size_t bytes,
                              struct tfm_error *err)
{
    struct buffer *b = dst.buffer;
    const struct tfm_host *host = device;
    if (dst.offset + bytes > b->size)
        return host->error(err, TFM_STATUS_BACKEND, "memory: write past the end");
    memcpy(b->bytes + dst.offset, src, bytes);
    return TFM_STATUS_OK;
}

static enum tfm_status download(void *device, struct tfm_memory src, void *dst, size_t bytes,
                                struct tfm_error *err)
{
    const struct buffer *b = src.buffer;
    const struct tfm_host *host = device;
    if (src.offset + bytes > b->size)
        return host->error(err, TFM_STATUS_BACKEND, "memory: read past the end");
    memcpy(dst, b->bytes + src.offset, bytes);
    return TFM_STATUS_OK;
}

static int32_t supports(void *device, const struct tfm_node *node,
                        const struct tfm_capacity *capacity, char *reason, size_t size)
{
    (void)device, (void)capacity;
    if (node->op == TFM_OP_ADD && node->inputs[0]->dtype == TFM_DTYPE_F32)
        return 1;
    snprintf(reason, size, "only add of f32");
    return 0;
}

static const float *at(struct tfm_memory memory)
{
    return (const float *)(((struct buffer *)memory.buffer)->bytes + memory.offset);
}

static enum tfm_status run_node(void *device, const struct tfm_node *node,
                                const struct tfm_memory *inputs, const struct tfm_memory *outputs,
                                const struct tfm_rows *rows, struct tfm_error *err)
{
    const struct tfm_host *host = device;
    const float *a = at(inputs[0]), *b = at(inputs[1]);
    float *y = (float *)at(outputs[0]);
    const int64_t n =
        tfm_tensor_rows(node->outputs[0], rows) * tfm_tensor_row_elements(node->outputs[0]);

    if (rows->n && memory_backend_control.fail_runs > 0) {
        memory_backend_control.fail_runs--;
        return host->error(err, TFM_STATUS_BACKEND, "memory: told to fail");
    }
    memory_backend_control.runs += rows->n > 0;
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
    return TFM_STATUS_OK;
}

/* ---- memory of the program ---- */

static enum tfm_status wrap(const struct tfm_host *host, const void *objects, void **device,
                            char *name, size_t size, struct tfm_error *err)
{
    const struct memory_backend_objects *o = objects;
    if (!o->name)
        return host->error(err, TFM_STATUS_INVALID_ARGUMENT, "memory: no name");
    snprintf(name, size, "%s", o->name);
    return open_device(host, 0, device, err);
}

static enum tfm_status objects_of(void *device, void *objects, struct tfm_error *err)
{
    struct memory_backend_objects *o = objects;
    (void)device, (void)err;
    o->name = "drawer";
    return TFM_STATUS_OK;
}

static enum tfm_status take(void *device, struct tfm_memory memory, size_t bytes, uint32_t access,
                            struct tfm_storage *storage, struct tfm_error *err)
{
    const struct tfm_host *host = device;
    struct buffer *b = memory.buffer;
    memory_backend_control.access = access;
    if (memory_backend_control.refuse_takes > 0) {
        memory_backend_control.refuse_takes--;
        return host->error(err, TFM_STATUS_INVALID_ARGUMENT, "memory: told to refuse");
    }
    if (memory.offset > b->size || bytes > b->size - memory.offset)
        return host->error(err, TFM_STATUS_INVALID_ARGUMENT, "memory: too small");
    b->holders++;
    *storage = (struct tfm_storage){b, memory.offset};
    return TFM_STATUS_OK;
}

static const void *extension(void *device, const char *name)
{
    static const struct tfm_interop interop = {sizeof interop, wrap, objects_of, take};
    (void)device;
    return strcmp(name, MEMORY_INTEROP) == 0 ? &interop : NULL;
}

const struct tfm_backend memory_backend = {
    .abi_major = TFM_BACKEND_ABI_MAJOR,
    .abi_minor = TFM_BACKEND_ABI_MINOR,
    .struct_size = sizeof memory_backend,
    .name = "memory",
    .version = "1",
    .license = "MIT",
    .probe = probe,
    .open = open_device,
    .close = close_device,
    .caps = caps,
    .alloc = alloc,
    .free = free_buffer,
    .upload = upload,
    .download = download,
    .supports = supports,
    .run_node = run_node,
    .extension = extension,
};
