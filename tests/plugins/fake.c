/* SPDX-License-Identifier: MIT
 * A complete third backend, the simple way: two ops, node by node, in memory of its own that the
 * host cannot address. It uses nothing but tfm/backend.h and is the example of
 * docs/add-a-backend.md. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <tfm/backend.h>

#include "tests/plugins/fake.h"

struct device {
    const struct tfm_host *host;
    struct fake_counters counters;
};

/* The handle of a buffer is no address of its data: who takes it for one reads the guard. */
struct buffer {
    double guard[8];
    size_t bytes;
    unsigned char data[];
};

/* ---- the device
 * ---------------------------------------------------------------------------------- */

static enum tfm_status fake_probe(const struct tfm_host *host, const char *params,
                                  struct tfm_probe *report, struct tfm_error *err)
{
    (void)host, (void)params, (void)err;
    report->usable = 1;
    report->score = 1;
    report->n_devices = 1;
    report->devices[0].kind = TFM_DEVICE_CPU;
    snprintf(report->devices[0].name, sizeof report->devices[0].name, "fake device");
    snprintf(report->devices[0].platform, sizeof report->devices[0].platform, "make-believe");
    return TFM_STATUS_OK;
}

static enum tfm_status fake_open(const struct tfm_host *host, uint32_t index, void **device,
                                 struct tfm_error *err)
{
    if (index != 0)
        return host->error(err, TFM_STATUS_NOT_FOUND, "there is no device %u", (unsigned)index);
    struct device *made = host->alloc(sizeof *made);
    if (!made)
        return host->error(err, TFM_STATUS_NOMEM, "out of memory");
    memset(made, 0, sizeof *made);
    made->host = host;
    *device = made;
    return TFM_STATUS_OK;
}

static void fake_close(void *device)
{
    ((struct device *)device)->host->free(device);
}

static void fake_caps(void *device, struct tfm_device_caps *caps)
{
    (void)device;
    caps->host_memory = 0;
    caps->whole_segments = 0;
    snprintf(caps->description, sizeof caps->description, "fake: add and swiglu in f32");
}

/* ---- memory
 * -------------------------------------------------------------------------------------- */

static enum tfm_status fake_alloc(void *device, size_t bytes, void **buffer, struct tfm_error *err)
{
    const struct tfm_host *host = ((struct device *)device)->host;
    struct buffer *made = NULL;

    if (bytes <= SIZE_MAX - sizeof *made)
        made = host->alloc(sizeof *made + bytes);
    if (!made)
        return host->error(err, TFM_STATUS_NOMEM, "out of memory (%zu bytes)", bytes);
    for (size_t i = 0; i < sizeof made->guard / sizeof *made->guard; i++)
        made->guard[i] = NAN;
    made->bytes = bytes;
    *buffer = made;
    return TFM_STATUS_OK;
}

static void fake_free(void *device, void *buffer)
{
    ((struct device *)device)->host->free(buffer);
}

/* Address of `bytes` bytes of a buffer, NULL when they do not lie in it. */
static void *place(struct tfm_memory memory, size_t bytes)
{
    struct buffer *buffer = memory.buffer;
    if (!buffer || memory.offset > buffer->bytes || bytes > buffer->bytes - memory.offset)
        return NULL;
    return buffer->data + memory.offset;
}

static enum tfm_status outside(const struct device *device, const char *what,
                               struct tfm_memory memory, size_t bytes, struct tfm_error *err)
{
    return device->host->error(err, TFM_STATUS_BACKEND,
                               "%s: %zu bytes at offset %zu do not lie in the buffer", what, bytes,
                               memory.offset);
}

static enum tfm_status fake_upload(void *device, const void *src, struct tfm_memory dst,
                                   size_t bytes, struct tfm_error *err)
{
    void *to = place(dst, bytes);
    if (!to)
        return outside(device, "upload", dst, bytes, err);
    memcpy(to, src, bytes);
    return TFM_STATUS_OK;
}

static enum tfm_status fake_download(void *device, struct tfm_memory src, void *dst, size_t bytes,
                                     struct tfm_error *err)
{
    const void *from = place(src, bytes);
    if (!from)
        return outside(device, "download", src, bytes, err);
    memcpy(dst, from, bytes);
    return TFM_STATUS_OK;
}

/* ---- ops
 * ----------------------------------------------------------------------------------------- */

static float add(float a, float b)
{
    return a + b;
}

/* silu(gate) * up, silu(x) = x / (1 + exp(-x)); at -infinity its limit 0 instead of inf / inf */
static float swiglu(float gate, float up)
{
    const float silu = gate == -INFINITY ? 0.0f : gate / (1.0f + expf(-gate));
    return silu * up;
}

static const struct {
    enum tfm_op op;
    float (*function)(float a, float b);
} ops[] = {{TFM_OP_ADD, add}, {TFM_OP_SWIGLU, swiglu}};

static float (*function_of(const struct tfm_node *node))(float, float)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (ops[i].op == node->op)
            return ops[i].function;
    }
    return NULL;
}

static int32_t fake_supports(void *device, const struct tfm_node *node,
                             const struct tfm_capacity *capacity, char *reason, size_t size)
{
    const struct tfm_host *host = ((struct device *)device)->host;

    (void)capacity;
    if (!function_of(node)) {
        snprintf(reason, size, "only add and swiglu");
        return 0;
    }
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (node->inputs[i]->dtype != TFM_DTYPE_F32) {
            snprintf(reason, size, "only f32, input %u is %s", (unsigned)i,
                     host->dtype_info(node->inputs[i]->dtype)->name);
            return 0;
        }
    }
    return 1;
}

static enum tfm_status fake_run_node(void *device, const struct tfm_node *node,
                                     const struct tfm_memory *inputs,
                                     const struct tfm_memory *outputs, const struct tfm_rows *rows,
                                     struct tfm_error *err)
{
    struct device *self = device;
    float (*function)(float, float) = function_of(node);
    const struct tfm_tensor *y = node->outputs[0];
    const size_t n = (size_t)(tfm_tensor_rows(y, rows) * tfm_tensor_row_elements(y));
    const float *a = place(inputs[0], n * sizeof *a), *b = place(inputs[1], n * sizeof *b);
    float *to = place(outputs[0], n * sizeof *to);

    if (!function || !a || !b || !to)
        return self->host->error(err, TFM_STATUS_INTERNAL, "run_node: a node that was refused");
    /* In place is fine: element i is read before it is written. */
    for (size_t i = 0; i < n; i++)
        to[i] = function(a[i], b[i]);
    self->counters.nodes++;
    self->counters.elements += n;
    return TFM_STATUS_OK;
}

/* ---- the table
 * ----------------------------------------------------------------------------------- */

static const void *fake_extension(void *device, const char *name)
{
    return device && strcmp(name, FAKE_COUNTERS) == 0 ? &((struct device *)device)->counters : NULL;
}

extern const struct tfm_backend tfm_backend_v1;
const struct tfm_backend tfm_backend_v1 = {
    .abi_major = TFM_BACKEND_ABI_MAJOR,
    .abi_minor = TFM_BACKEND_ABI_MINOR,
    .struct_size = sizeof(struct tfm_backend),
    .name = "fake",
    .version = "1.0",
    .license = "MIT",
    .probe = fake_probe,
    .open = fake_open,
    .close = fake_close,
    .caps = fake_caps,
    .alloc = fake_alloc,
    .free = fake_free,
    .upload = fake_upload,
    .download = fake_download,
    .supports = fake_supports,
    .run_node = fake_run_node,
    .extension = fake_extension,
};
