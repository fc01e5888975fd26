/* SPDX-License-Identifier: MIT
 * Buffers of a device and the copies between them and the host; each call is complete when it returns. */
#include "backends/opencl/internal.h"

/* An upload of so many bytes fills memory, a smaller one may be rows of a run. */
enum { MUCH = 64 << 10 };

static enum tfm_status create(const struct tfm__cl_device *d, size_t bytes,
                              enum tfm__cl_filling filling, cl_mem *made, int *zeroed,
                              struct tfm_error *err)
{
    if (bytes > d->max_alloc)
        return d->host->error(err, TFM_STATUS_NOMEM,
                              "opencl: a buffer of %zu bytes is more than the %zu that %s allows; "
                              "use a smaller context or chunk",
                              bytes, d->max_alloc, d->name);
    return tfm__cl_buffer_create(d, CL_MEM_READ_WRITE, bytes, filling, made, zeroed, err);
}

enum tfm_status tfm__cl_alloc(void *device, size_t bytes, void **buffer, struct tfm_error *err)
{
    cl_mem memory = NULL;
    int zeroed;
    const enum tfm_status status = create(device, bytes, TFM__CL_DENSE, &memory, &zeroed, err);

    if (status == TFM_STATUS_OK)
        *buffer = memory;
    return status;
}

static enum tfm_status fill_with_zeros(const struct tfm__cl_device *d, cl_mem memory, size_t bytes,
                                       struct tfm_error *err)
{
    const cl_uchar zero = 0;
    cl_int code =
        clEnqueueFillBuffer(d->queue, memory, &zero, sizeof zero, 0, bytes, 0, NULL, NULL);

    if (code != CL_SUCCESS)
        return tfm__cl_fail(d->host, err, "clEnqueueFillBuffer", code);
    code = clFinish(d->queue);
    return code == CL_SUCCESS ? TFM_STATUS_OK : tfm__cl_fail(d->host, err, "clFinish", code);
}

enum tfm_status tfm__cl_alloc_zeroed(void *device, size_t bytes, void **buffer,
                                     struct tfm_error *err)
{
    const struct tfm__cl_device *d = device;
    cl_mem memory = NULL;
    int zeroed = 0;
    enum tfm_status status = create(d, bytes, TFM__CL_SPARSE, &memory, &zeroed, err);

    if (status == TFM_STATUS_OK && !zeroed)
        status = fill_with_zeros(d, memory, bytes, err);
    if (status == TFM_STATUS_OK)
        *buffer = memory;
    else if (memory)
        (void)clReleaseMemObject(memory);
    return status;
}

void tfm__cl_free(void *device, void *buffer)
{
    (void)device;
    if (buffer)
        (void)clReleaseMemObject(buffer);
}

enum tfm_status tfm__cl_upload(void *device, const void *src, struct tfm_memory dst, size_t bytes,
                               struct tfm_error *err)
{
    const struct tfm__cl_device *d = device;

    if (bytes == 0)
        return TFM_STATUS_OK;
    if (bytes >= MUCH)
        tfm__cl_sparse_used(dst.buffer);
    const cl_int code =
        clEnqueueWriteBuffer(d->queue, dst.buffer, CL_TRUE, dst.offset, bytes, src, 0, NULL, NULL);
    return code == CL_SUCCESS ? TFM_STATUS_OK
                              : tfm__cl_fail(d->host, err, "clEnqueueWriteBuffer", code);
}

enum tfm_status tfm__cl_download(void *device, struct tfm_memory src, void *dst, size_t bytes,
                                 struct tfm_error *err)
{
    const struct tfm__cl_device *d = device;

    if (bytes == 0)
        return TFM_STATUS_OK;
    const cl_int code =
        clEnqueueReadBuffer(d->queue, src.buffer, CL_TRUE, src.offset, bytes, dst, 0, NULL, NULL);
    return code == CL_SUCCESS ? TFM_STATUS_OK
                              : tfm__cl_fail(d->host, err, "clEnqueueReadBuffer", code);
}

enum tfm_status tfm__cl_copy(void *device, struct tfm_memory src, struct tfm_memory dst,
                             size_t bytes, struct tfm_error *err)
{
    const struct tfm__cl_device *d = device;
    cl_event event = NULL;

    if (bytes == 0)
        return TFM_STATUS_OK;
    cl_int code = clEnqueueCopyBuffer(d->queue, src.buffer, dst.buffer, src.offset, dst.offset,
                                      bytes, 0, NULL, &event);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(d->host, err, "clEnqueueCopyBuffer", code);
    code = clWaitForEvents(1, &event);
    (void)clReleaseEvent(event);
    return code == CL_SUCCESS ? TFM_STATUS_OK : tfm__cl_fail(d->host, err, "clWaitForEvents", code);
}
