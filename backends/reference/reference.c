/* SPDX-License-Identifier: MIT
 * The reference backend: plain C, every op and every dtype, node by node in host memory. Built into
 * libtfm; what it computes is what the other backends are tested against. */
#include <stdio.h>
#include <string.h>

#include "config.h"

#include "backends/reference/backend.h"
#include "backends/reference/reference.h"

typedef enum tfm_status kernel(const struct tfm__reference_call *call);

/* Without holes: an op of ops.def that has no kernel does not link. */
static kernel *const kernels[TFM_OP_LIMIT] = {
#define TFM_OP(id, NAME, stem, in_min, in_max, outputs, rows, in_place, diff, nmse, minor) \
    [TFM_OP_##NAME] = tfm__reference_##stem,
#include <tfm/ops.def>
#undef TFM_OP
};

struct device {
    const struct tfm_host *host;
};

static kernel *find(enum tfm_op op)
{
    return (unsigned)op < TFM_OP_LIMIT ? kernels[op] : NULL;
}

static enum tfm_status probe(const struct tfm_host *host, const char *params,
                             struct tfm_probe *report, struct tfm_error *err)
{
    (void)host;
    (void)params;
    (void)err;
    memset(report, 0, sizeof *report);
    report->usable = 1;
    report->n_devices = 1;
    snprintf(report->devices[0].name, sizeof report->devices[0].name, "host");
    report->devices[0].kind = TFM_DEVICE_CPU;
    return TFM_STATUS_OK;
}

static enum tfm_status open(const struct tfm_host *host, uint32_t index, void **device,
                            struct tfm_error *err)
{
    struct device *d;

    if (index != 0)
        return host->error(err, TFM_STATUS_NOT_FOUND,
                           "reference: there is no device %u; its only device is 0", index);
    d = host->alloc(sizeof *d);
    if (!d)
        return host->error(err, TFM_STATUS_NOMEM, "reference: out of memory for the device");
    d->host = host;
    *device = d;
    return TFM_STATUS_OK;
}

static void close(void *device)
{
    ((struct device *)device)->host->free(device);
}

static void caps(void *device, struct tfm_device_caps *caps)
{
    memset(caps, 0, sizeof *caps);
    caps->host_memory = 1;
    snprintf(caps->description, sizeof caps->description, "plain C in double precision, %u threads",
             ((struct device *)device)->host->threads());
}

static enum tfm_status alloc(void *device, size_t bytes, void **buffer, struct tfm_error *err)
{
    const struct tfm_host *host = ((struct device *)device)->host;
    void *memory = host->alloc(bytes);

    if (!memory)
        return host->error(err, TFM_STATUS_NOMEM, "reference: out of memory for %zu bytes", bytes);
    *buffer = memory;
    return TFM_STATUS_OK;
}

static void release(void *device, void *buffer)
{
    ((struct device *)device)->host->free(buffer);
}

static unsigned char *at(struct tfm_memory memory)
{
    return (unsigned char *)memory.buffer + memory.offset;
}

static enum tfm_status upload(void *device, const void *src, struct tfm_memory dst, size_t bytes,
                              struct tfm_error *err)
{
    (void)device;
    (void)err;
    if (bytes)
        memcpy(at(dst), src, bytes);
    return TFM_STATUS_OK;
}

static enum tfm_status download(void *device, struct tfm_memory src, void *dst, size_t bytes,
                                struct tfm_error *err)
{
    (void)device;
    (void)err;
    if (bytes)
        memcpy(dst, at(src), bytes);
    return TFM_STATUS_OK;
}

static enum tfm_status copy(void *device, struct tfm_memory src, struct tfm_memory dst,
                            size_t bytes, struct tfm_error *err)
{
    (void)device;
    (void)err;
    if (bytes)
        memmove(at(dst), at(src), bytes);
    return TFM_STATUS_OK;
}

/* The shape rules of lib/ops are the limits of this backend: a node that could be built can run. */
static int32_t supports(void *device, const struct tfm_node *node,
                        const struct tfm_capacity *capacity, char *reason, size_t size)
{
    (void)device;
    (void)capacity;
    if (find(node->op))
        return 1;
    if (size > 0)
        snprintf(reason, size, "there is no op %d", (int)node->op);
    return 0;
}

static enum tfm_status run_node(void *device, const struct tfm_node *node,
                                const struct tfm_memory *inputs, const struct tfm_memory *outputs,
                                const struct tfm_rows *rows, struct tfm_error *err)
{
    const struct tfm_host *host = ((struct device *)device)->host;
    const struct tfm__reference_call call = {host, node, inputs, outputs, rows, err};
    kernel *const run = find(node->op);

    if (!run)
        return host->error(err, TFM_STATUS_UNSUPPORTED, "reference: there is no op %d",
                           (int)node->op);
    return run(&call);
}

int32_t tfm__reference_i32(const void *data, size_t i)
{
    int32_t value;
    memcpy(&value, (const unsigned char *)data + 4 * i, 4);
    return value;
}

enum tfm_status tfm__reference_check_ids(const struct tfm__reference_call *call, uint32_t input,
                                         size_t n, int64_t limit)
{
    const void *ids = tfm__reference_input(call, input);
    const struct tfm_tensor *tensor = call->node->inputs[input];
    const int none = tensor->view_of ? tensor->view_of->may_be_none : tensor->may_be_none;

    for (size_t i = 0; i < n; i++) {
        const int32_t id = tfm__reference_i32(ids, i);
        if (id == -1 && none)
            continue;
        if (id >= limit && tensor->is_position)
            return call->host->error(call->err, TFM_STATUS_CONTEXT_FULL,
                                     "%s: context full: position %d, the table ends at %lld",
                                     tfm_op_name(call->node->op), id, (long long)limit);
        if (id < 0 || id >= limit)
            return call->host->error(call->err, TFM_STATUS_OUT_OF_RANGE,
                                     "%s: value %d of '%s' at row %zu does not lie in %d..%lld",
                                     tfm_op_name(call->node->op), id, tensor->name, i,
                                     none ? -1 : 0, (long long)limit - 1);
    }
    return TFM_STATUS_OK;
}

const struct tfm_backend tfm__backend_reference = {
    .abi_major = TFM_BACKEND_ABI_MAJOR,
    .abi_minor = TFM_BACKEND_ABI_MINOR,
    .struct_size = sizeof(struct tfm_backend),
    .name = "reference",
    .version = PACKAGE_VERSION,
    .license = "MIT",
    .probe = probe,
    .open = open,
    .close = close,
    .caps = caps,
    .alloc = alloc,
    .free = release,
    .upload = upload,
    .download = download,
    .copy = copy,
    .supports = supports,
    .run_node = run_node,
};
