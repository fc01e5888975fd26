/* SPDX-License-Identifier: MIT
 * Slots of a backend that does nothing, for tables whose faults or answers are the subject of a
 * test. */
#ifndef TESTS_PLUGINS_STUB_H
#define TESTS_PLUGINS_STUB_H

#include <stdio.h>

#include <tfm/backend.h>

static inline enum tfm_status stub_probe(const struct tfm_host *host, const char *params,
                                         struct tfm_probe *report, struct tfm_error *err)
{
    (void)host, (void)params, (void)err;
    report->usable = 1;
    report->score = 10;
    report->n_devices = 1;
    snprintf(report->devices[0].name, sizeof report->devices[0].name, "stub device");
    return TFM_STATUS_OK;
}

static inline enum tfm_status stub_open(const struct tfm_host *host, uint32_t index, void **device,
                                        struct tfm_error *err)
{
    static int handle;
    (void)host, (void)index, (void)err;
    *device = &handle;
    return TFM_STATUS_OK;
}

static inline void stub_close(void *device)
{
    (void)device;
}

static inline void stub_caps(void *device, struct tfm_device_caps *caps)
{
    (void)device;
    caps->host_memory = 0;
}

static inline enum tfm_status stub_alloc(void *device, size_t bytes, void **buffer,
                                         struct tfm_error *err)
{
    (void)device, (void)bytes, (void)buffer, (void)err;
    return TFM_STATUS_NOMEM;
}

static inline void stub_free(void *device, void *buffer)
{
    (void)device, (void)buffer;
}

static inline enum tfm_status stub_upload(void *device, const void *src, struct tfm_memory dst,
                                          size_t bytes, struct tfm_error *err)
{
    (void)device, (void)src, (void)dst, (void)bytes, (void)err;
    return TFM_STATUS_BACKEND;
}

static inline enum tfm_status stub_download(void *device, struct tfm_memory src, void *dst,
                                            size_t bytes, struct tfm_error *err)
{
    (void)device, (void)src, (void)dst, (void)bytes, (void)err;
    return TFM_STATUS_BACKEND;
}

static inline enum tfm_status stub_map(void *device, struct tfm_memory memory, size_t bytes,
                                       void **pointer, struct tfm_error *err)
{
    (void)device, (void)memory, (void)bytes, (void)pointer, (void)err;
    return TFM_STATUS_BACKEND;
}

static inline enum tfm_status stub_unmap(void *device, struct tfm_memory memory, void *pointer,
                                         struct tfm_error *err)
{
    (void)device, (void)memory, (void)pointer, (void)err;
    return TFM_STATUS_BACKEND;
}

static inline int32_t stub_supports(void *device, const struct tfm_node *node,
                                    const struct tfm_capacity *capacity, char *reason, size_t size)
{
    (void)device, (void)node, (void)capacity;
    snprintf(reason, size, "a stub runs nothing");
    return 0;
}

static inline enum tfm_status stub_run_node(void *device, const struct tfm_node *node,
                                            const struct tfm_memory *inputs,
                                            const struct tfm_memory *outputs,
                                            const struct tfm_rows *rows, struct tfm_error *err)
{
    (void)device, (void)node, (void)inputs, (void)outputs, (void)rows, (void)err;
    return TFM_STATUS_BACKEND;
}

static inline enum tfm_status stub_compile(void *device, struct tfm_weights *weights,
                                           const struct tfm_segment *segment,
                                           const struct tfm_capacity *capacity,
                                           struct tfm_program *program, struct tfm_error *err)
{
    (void)device, (void)weights, (void)segment, (void)capacity, (void)program, (void)err;
    return TFM_STATUS_BACKEND;
}

static inline void stub_release(void *device, struct tfm_program *program)
{
    (void)device, (void)program;
}

static inline enum tfm_status stub_exec_open(void *device, const struct tfm_program *program,
                                             const struct tfm_exec_memory *memory, void **exec,
                                             struct tfm_error *err)
{
    (void)device, (void)program, (void)memory, (void)exec, (void)err;
    return TFM_STATUS_BACKEND;
}

static inline enum tfm_status stub_exec_run(void *exec, const struct tfm_rows *rows,
                                            struct tfm_error *err)
{
    (void)exec, (void)rows, (void)err;
    return TFM_STATUS_BACKEND;
}

static inline void stub_exec_close(void *exec)
{
    (void)exec;
}

/* Complete the simple way; a test changes one member. */
static inline struct tfm_backend stub_table(const char *name)
{
    const struct tfm_backend table = {
        .abi_major = TFM_BACKEND_ABI_MAJOR,
        .abi_minor = TFM_BACKEND_ABI_MINOR,
        .struct_size = sizeof table,
        .name = name,
        .version = "1",
        .license = "MIT",
        .probe = stub_probe,
        .open = stub_open,
        .close = stub_close,
        .caps = stub_caps,
        .alloc = stub_alloc,
        .free = stub_free,
        .upload = stub_upload,
        .download = stub_download,
        .supports = stub_supports,
        .run_node = stub_run_node,
    };
    return table;
}

#endif
