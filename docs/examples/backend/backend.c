/* SPDX-License-Identifier: MIT
 * The table that makes this module a backend of TFM, and what does not belong to one op. */
#include <stdio.h>
#include <string.h>

#include "example.h"

/* From op to what runs it; NULL = this backend has no such op. */
static const struct example_op *const ops[TFM_OP_LIMIT] = {
#define EXAMPLE_OP(NAME, stem) [TFM_OP_##NAME] = &example_##stem,
    EXAMPLE_OPS(EXAMPLE_OP)
#undef EXAMPLE_OP
};

/* A library that is newer than this module may know more ops. */
static const struct example_op *find(const struct tfm_node *node)
{
    return (unsigned)node->op < TFM_OP_LIMIT ? ops[node->op] : NULL;
}

/* ---- the device ---- */

/* Ask the driver here. When it is not there: usable = 0, and in `reason` what to install. */
static enum tfm_status example_probe(const struct tfm_host *host, const char *params,
                                     struct tfm_probe *report, struct tfm_error *err)
{
    (void)host, (void)params, (void)err;
    memset(report, 0, sizeof *report);
    report->usable = 1;
    report->score =
        5; /* `auto` takes the highest; the reference has 0, a CPU device 50, a GPU 100 */
    report->n_devices = 1;
    report->devices[0].kind = TFM_DEVICE_CPU;
    snprintf(report->devices[0].name, sizeof report->devices[0].name, "example device");
    snprintf(report->devices[0].platform, sizeof report->devices[0].platform, "plain C");
    return TFM_STATUS_OK;
}

static enum tfm_status example_open(const struct tfm_host *host, uint32_t index, void **device,
                                    struct tfm_error *err)
{
    if (index != 0)
        return host->error(err, TFM_STATUS_NOT_FOUND, "there is no device %u; the only device is 0",
                           (unsigned)index);
    struct example_device *made = host->alloc(sizeof *made);
    if (!made)
        return host->error(err, TFM_STATUS_NOMEM, "out of memory for the device");
    made->host = host;
    *device = made;
    return TFM_STATUS_OK;
}

static void example_close(void *device)
{
    ((struct example_device *)device)->host->free(device);
}

static void example_caps(void *device, struct tfm_device_caps *caps)
{
    (void)device;
    memset(caps, 0, sizeof *caps);
    caps->host_memory = 0;    /* a handle is no address: the library uploads and downloads */
    caps->whole_segments = 0; /* node by node: run_node is all there is */
    snprintf(caps->description, sizeof caps->description, "example: four ops in f32");
}

/* ---- nodes ---- */

static int32_t example_supports(void *device, const struct tfm_node *node,
                                const struct tfm_capacity *capacity, char *reason, size_t size)
{
    const struct tfm_host *host = ((struct example_device *)device)->host;
    const struct example_op *op = find(node);

    (void)capacity; /* no limit on rows here */
    if (!op)
        return example_refuse(reason, size, "no kernel for this op");
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (node->inputs[i] && node->inputs[i]->dtype != TFM_DTYPE_F32) {
            snprintf(reason, size, "only f32, input %u is %s", (unsigned)i,
                     host->dtype_info(node->inputs[i]->dtype)->name);
            return 0;
        }
    }
    if (node->outputs[0]->dtype != TFM_DTYPE_F32)
        return example_refuse(reason, size, "only f32, the output is not");
    return op->supports(node, reason, size);
}

static enum tfm_status example_run_node(void *device, const struct tfm_node *node,
                                        const struct tfm_memory *inputs,
                                        const struct tfm_memory *outputs,
                                        const struct tfm_rows *rows, struct tfm_error *err)
{
    const struct example_device *self = device;
    const struct example_op *op = find(node);
    struct example_call call = {.device = self, .node = node, .rows = rows};

    if (!op)
        return self->host->error(err, TFM_STATUS_INTERNAL, "run_node: a node that was refused");
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (!node->inputs[i])
            continue;
        call.inputs[i] =
            example_place(inputs[i], example_elements(node->inputs[i], rows) * sizeof *call.output);
        if (!call.inputs[i])
            return self->host->error(err, TFM_STATUS_BACKEND, "input %u is not in its buffer",
                                     (unsigned)i);
    }
    call.output =
        example_place(outputs[0], example_elements(node->outputs[0], rows) * sizeof *call.output);
    if (!call.output)
        return self->host->error(err, TFM_STATUS_BACKEND, "the output is not in its buffer");
    op->run(&call);
    return TFM_STATUS_OK;
}

/* ---- the table ---- */

TFM_API extern const struct tfm_backend tfm_backend_v1;

const struct tfm_backend tfm_backend_v1 = {
    .abi_major = TFM_BACKEND_ABI_MAJOR,
    .abi_minor = TFM_BACKEND_ABI_MINOR,
    .struct_size = sizeof(struct tfm_backend),
    .name = "example",
    .version = "1.0",
    .license = "MIT",
    .probe = example_probe,
    .open = example_open,
    .close = example_close,
    .caps = example_caps,
    .alloc = example_alloc,
    .free = example_free,
    .upload = example_upload,
    .download = example_download,
    .copy = example_copy,
    .supports = example_supports,
    .run_node = example_run_node,
};
