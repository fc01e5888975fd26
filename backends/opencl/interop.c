/* SPDX-License-Identifier: MIT
 * Extension "opencl.interop-1": devices on the caller's context and queue, tensors in his buffers. What does
 * not fit together is refused here, because some drivers crash on it later. */
#include <stdio.h>
#include <string.h>

#include "backends/opencl/internal.h"

enum { CONTEXT_DEVICES = 64, NAMES = 300 };

static void device_name(cl_device_id device, char *name, size_t size)
{
    name[0] = 0;
    if (clGetDeviceInfo(device, CL_DEVICE_NAME, size, name, NULL) != CL_SUCCESS)
        snprintf(name, size, "?");
    name[size - 1] = 0;
}

/* ---- wrapping a device ---- */

static cl_device_id parent_of(cl_device_id device)
{
    cl_device_id parent = NULL;
    if (clGetDeviceInfo(device, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, NULL) !=
        CL_SUCCESS)
        return NULL;
    return parent;
}

/* Some implementations list the whole device for a context that was made of a part of it. */
static int is_held(cl_device_id device, const cl_device_id *held, size_t n)
{
    for (; device; device = parent_of(device)) {
        for (size_t i = 0; i < n; i++) {
            if (held[i] == device)
                return 1;
        }
    }
    return 0;
}

static enum tfm_status check_context(const struct tfm_host *host,
                                     const struct tfm_opencl_objects *o, struct tfm_error *err)
{
    cl_device_id devices[CONTEXT_DEVICES];
    char wanted[128], name[128], there[NAMES] = "";
    size_t bytes = 0, used = 0;
    const cl_int code =
        clGetContextInfo(o->context, CL_CONTEXT_DEVICES, sizeof devices, devices, &bytes);

    if (code != CL_SUCCESS)
        return tfm__cl_fail(host, err, "clGetContextInfo", code);
    if (is_held(o->device, devices, bytes / sizeof *devices))
        return TFM_STATUS_OK;
    for (size_t i = 0; i < bytes / sizeof *devices; i++) {
        device_name(devices[i], name, sizeof name);
        const int n =
            snprintf(there + used, sizeof there - used, "%s\"%s\"", used ? ", " : "", name);
        used = n < 0 || used + (size_t)n >= sizeof there ? sizeof there - 1 : used + (size_t)n;
    }
    device_name(o->device, wanted, sizeof wanted);
    return host->error(
        err, TFM_STATUS_INVALID_ARGUMENT,
        "opencl: the context does not hold this device \"%s\", it holds %s; give one "
        "of these, or a context that was made with the device",
        wanted, there);
}

static enum tfm_status check_queue(const struct tfm_host *host, const struct tfm_opencl_objects *o,
                                   struct tfm_error *err)
{
    cl_context context = NULL;
    cl_device_id device = NULL;
    cl_command_queue_properties properties = 0;
    char wanted[128], name[128];
    cl_int code = clGetCommandQueueInfo(o->queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);

    if (code == CL_SUCCESS)
        code = clGetCommandQueueInfo(o->queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
    if (code == CL_SUCCESS)
        code = clGetCommandQueueInfo(o->queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties,
                                     NULL);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(host, err, "clGetCommandQueueInfo", code);
    if (context != o->context)
        return host->error(
            err, TFM_STATUS_INVALID_ARGUMENT,
            "opencl: the queue belongs to another context than the one given; make a "
            "queue in this one");
    if (device != o->device) {
        device_name(device, name, sizeof name);
        device_name(o->device, wanted, sizeof wanted);
        return host->error(err, TFM_STATUS_INVALID_ARGUMENT,
                           "opencl: the queue is one of device \"%s\", not of the device given, "
                           "\"%s\"; make a queue for this one",
                           name, wanted);
    }
    if (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
        return host->error(err, TFM_STATUS_INVALID_ARGUMENT,
                           "opencl: the queue is out-of-order, and the steps of a run need their "
                           "order; give an in-order queue of the same context (work of the other "
                           "one is ordered by a barrier with its event)");
    return TFM_STATUS_OK;
}

static enum tfm_status wrap(const struct tfm_host *host, const void *objects, void **device,
                            char *name, size_t size, struct tfm_error *err)
{
    const struct tfm_opencl_objects *o = objects;
    cl_platform_id platform = NULL;

    if (!o || !o->context || !o->device || !o->queue)
        return host->error(err, TFM_STATUS_INVALID_ARGUMENT, "opencl: the %s is NULL",
                           !o            ? "structure of objects"
                           : !o->context ? "context"
                           : !o->device  ? "device"
                                         : "queue");
    enum tfm_status status = check_context(host, o, err);
    if (status == TFM_STATUS_OK)
        status = check_queue(host, o, err);
    if (status != TFM_STATUS_OK)
        return status;
    const cl_int code =
        clGetDeviceInfo(o->device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(host, err, "clGetDeviceInfo", code);
    status = tfm__cl_open_lent(host, platform, o, device, err);
    if (status == TFM_STATUS_OK)
        device_name(o->device, name, size);
    return status;
}

static enum tfm_status objects_of(void *device, void *objects, struct tfm_error *err)
{
    const struct tfm__cl_device *d = device;
    struct tfm_opencl_objects *o = objects;

    (void)err;
    *o = (struct tfm_opencl_objects){.context = d->context, .device = d->id, .queue = d->queue};
    return TFM_STATUS_OK;
}

/* ---- taking a buffer ---- */

static enum tfm_status check_flags(const struct tfm_host *host, cl_mem_flags flags, uint32_t access,
                                   struct tfm_error *err)
{
    static const struct rule {
        uint32_t access;
        cl_mem_flags against;
        const char *text;
    } rules[] = {
        {TFM_ACCESS_READ, CL_MEM_WRITE_ONLY,
         "CL_MEM_WRITE_ONLY, and kernels of the plan read the tensor"},
        {TFM_ACCESS_WRITE, CL_MEM_READ_ONLY,
         "CL_MEM_READ_ONLY, and kernels of the plan write the tensor"},
        {TFM_ACCESS_HOST_READ, CL_MEM_HOST_NO_ACCESS | CL_MEM_HOST_WRITE_ONLY,
         "closed to reads of the host, which must check indices and feed other devices"},
        {TFM_ACCESS_HOST_WRITE, CL_MEM_HOST_NO_ACCESS | CL_MEM_HOST_READ_ONLY,
         "closed to writes of the host, which brings the tensor from another device"},
    };

    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if ((access & rules[i].access) && (flags & rules[i].against))
            return host->error(err, TFM_STATUS_INVALID_ARGUMENT,
                               "opencl: the buffer is %s; create it without that flag",
                               rules[i].text);
    }
    return TFM_STATUS_OK;
}

/* A sub-buffer is bytes of its parent. */
static cl_int find_storage(cl_mem buffer, size_t offset, struct tfm_storage *storage)
{
    cl_mem parent = NULL;
    size_t at = 0;
    cl_int code =
        clGetMemObjectInfo(buffer, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, NULL);

    if (code == CL_SUCCESS && parent)
        code = clGetMemObjectInfo(buffer, CL_MEM_OFFSET, sizeof at, &at, NULL);
    if (code == CL_SUCCESS)
        *storage = (struct tfm_storage){parent ? parent : buffer, at + offset};
    return code;
}

static enum tfm_status take(void *device, struct tfm_memory memory, size_t bytes, uint32_t access,
                            struct tfm_storage *storage, struct tfm_error *err)
{
    const struct tfm__cl_device *d = device;
    const cl_mem buffer = memory.buffer;
    cl_mem_object_type type = 0;
    cl_mem_flags flags = 0;
    cl_context context = NULL;
    size_t size = 0;

    if (!buffer)
        return d->host->error(err, TFM_STATUS_INVALID_ARGUMENT, "opencl: the buffer is NULL");
    cl_int code = clGetMemObjectInfo(buffer, CL_MEM_TYPE, sizeof type, &type, NULL);
    if (code == CL_SUCCESS)
        code = clGetMemObjectInfo(buffer, CL_MEM_CONTEXT, sizeof context, &context, NULL);
    if (code == CL_SUCCESS)
        code = clGetMemObjectInfo(buffer, CL_MEM_FLAGS, sizeof flags, &flags, NULL);
    if (code == CL_SUCCESS)
        code = clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof size, &size, NULL);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(d->host, err, "clGetMemObjectInfo", code);
    if (type != CL_MEM_OBJECT_BUFFER)
        return d->host->error(err, TFM_STATUS_INVALID_ARGUMENT,
                              "opencl: the memory object is no buffer (type 0x%x); copy it to one",
                              (unsigned)type);
    if (context != d->context)
        return d->host->error(err, TFM_STATUS_INVALID_ARGUMENT,
                              "opencl: the buffer belongs to another context than the device; "
                              "create it in the context that was wrapped");
    if (memory.offset > size || bytes > size - memory.offset)
        return d->host->error(err, TFM_STATUS_INVALID_ARGUMENT,
                              "opencl: %zu bytes from offset %zu on pass the end of the buffer, "
                              "which has %zu",
                              bytes, memory.offset, size);
    const enum tfm_status status = check_flags(d->host, flags, access, err);
    if (status != TFM_STATUS_OK)
        return status;
    code = find_storage(buffer, memory.offset, storage);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(d->host, err, "clGetMemObjectInfo", code);
    code = clRetainMemObject(buffer);
    return code == CL_SUCCESS ? TFM_STATUS_OK
                              : tfm__cl_fail(d->host, err, "clRetainMemObject", code);
}

const struct tfm_interop tfm__cl_interop = {
    .struct_size = sizeof tfm__cl_interop,
    .wrap = wrap,
    .objects = objects_of,
    .take = take,
};
