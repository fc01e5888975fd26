/* SPDX-License-Identifier: MIT
 * The blas backend: the linear op on OpenBLAS, node by node in host memory; everything else falls
 * back. A module of its own, and the small example of a real backend beside reference and opencl. */
#include "backends/blas/blas.h"

#include <cblas.h>
#include <stdio.h>
#include <string.h>

#include "config.h"

/* Above the reference, below a CPU device that runs whole models. */
enum { SCORE = 20 };

static enum tfm_status probe(const struct tfm_host *host, const char *params,
                             struct tfm_probe *report, struct tfm_error *err)
{
    struct tfm_error why = {0};

    (void)params, (void)err;
    memset(report, 0, sizeof *report);
    if (tfm__blas_selftest(host, &why) != TFM_STATUS_OK) {
        snprintf(report->reason, sizeof report->reason, "%.500s", why.text);
        return TFM_STATUS_OK;
    }
    report->usable = 1;
    report->score = SCORE;
    report->n_devices = 1;
    report->devices[0].kind = TFM_DEVICE_CPU;
    snprintf(report->devices[0].name, sizeof report->devices[0].name, "%s",
             openblas_get_corename());
    snprintf(report->devices[0].platform, sizeof report->devices[0].platform, "OpenBLAS");
    return TFM_STATUS_OK;
}

static enum tfm_status open(const struct tfm_host *host, uint32_t index, void **device,
                            struct tfm_error *err)
{
    if (index != 0)
        return host->error(err, TFM_STATUS_NOT_FOUND, "there is no device %u; the only device is 0",
                           (unsigned)index);
    struct tfm__blas_device *made = host->alloc(sizeof *made);
    if (!made)
        return host->error(err, TFM_STATUS_NOMEM, "out of memory for the device");
    made->host = host;
    made->threads = host->threads();
    *device = made;
    return TFM_STATUS_OK;
}

static void close(void *device)
{
    ((struct tfm__blas_device *)device)->host->free(device);
}

static void caps(void *device, struct tfm_device_caps *caps)
{
    memset(caps, 0, sizeof *caps);
    caps->host_memory = 1;
    snprintf(caps->description, sizeof caps->description, "linear on %s, %u threads",
             openblas_get_config(), (unsigned)((struct tfm__blas_device *)device)->threads);
}

static enum tfm_status alloc(void *device, size_t bytes, void **buffer, struct tfm_error *err)
{
    const struct tfm_host *host = ((struct tfm__blas_device *)device)->host;
    void *memory = host->alloc(bytes);

    if (!memory)
        return host->error(err, TFM_STATUS_NOMEM, "out of memory for %zu bytes", bytes);
    *buffer = memory;
    return TFM_STATUS_OK;
}

static void release(void *device, void *buffer)
{
    ((struct tfm__blas_device *)device)->host->free(buffer);
}

static enum tfm_status upload(void *device, const void *src, struct tfm_memory dst, size_t bytes,
                              struct tfm_error *err)
{
    (void)device, (void)err;
    if (bytes)
        memcpy((unsigned char *)dst.buffer + dst.offset, src, bytes);
    return TFM_STATUS_OK;
}

static enum tfm_status download(void *device, struct tfm_memory src, void *dst, size_t bytes,
                                struct tfm_error *err)
{
    (void)device, (void)err;
    if (bytes)
        memcpy(dst, (const unsigned char *)src.buffer + src.offset, bytes);
    return TFM_STATUS_OK;
}

static int32_t supports(void *device, const struct tfm_node *node,
                        const struct tfm_capacity *capacity, char *reason, size_t size)
{
    if (node->op == TFM_OP_LINEAR)
        return tfm__blas_linear_supports(device, node, capacity, reason, size);
    snprintf(reason, size, "only linear");
    return 0;
}

static enum tfm_status run_node(void *device, const struct tfm_node *node,
                                const struct tfm_memory *inputs, const struct tfm_memory *outputs,
                                const struct tfm_rows *rows, struct tfm_error *err)
{
    const struct tfm__blas_device *self = device;

    if (node->op != TFM_OP_LINEAR)
        return self->host->error(err, TFM_STATUS_UNSUPPORTED, "only linear, not op %d",
                                 (int)node->op);
    return tfm__blas_linear_run(self, node, inputs, outputs, rows, err);
}

TFM_API extern const struct tfm_backend tfm_backend_v1;

const struct tfm_backend tfm_backend_v1 = {
    .abi_major = TFM_BACKEND_ABI_MAJOR,
    .abi_minor = TFM_BACKEND_ABI_MINOR,
    .struct_size = sizeof(struct tfm_backend),
    .name = "blas",
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
    .supports = supports,
    .run_node = run_node,
};
