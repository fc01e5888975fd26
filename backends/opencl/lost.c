/* SPDX-License-Identifier: MIT
 * A device can go away under a running program: a driver was reset, a kernel of somebody else hung, a GPU
 * fell off its bus. OpenCL has no code for that: drivers answer -5, -36 or whatever they like, the same as
 * for a failure that passes. So after a failure the device is asked to carry a word there and back; one
 * that cannot is lost for good, and says so to everyone who uses it. */
#include "backends/opencl/internal.h"

enum tfm_status tfm__cl_pulse_open(struct tfm__cl_device *d, struct tfm_error *err)
{
    cl_int code = CL_SUCCESS;

    d->pulse = clCreateBuffer(d->context, CL_MEM_READ_WRITE, sizeof(cl_uint), NULL, &code);
    return code == CL_SUCCESS ? TFM_STATUS_OK : tfm__cl_fail(d->host, err, "clCreateBuffer", code);
}

void tfm__cl_pulse_close(struct tfm__cl_device *d)
{
    if (d->pulse)
        (void)clReleaseMemObject(d->pulse);
}

static int answers(const struct tfm__cl_device *d, cl_command_queue queue)
{
    const cl_uint sent = 0x2b992ddf;
    cl_uint got = 0;

    return (!queue || clFinish(queue) == CL_SUCCESS) &&
           clEnqueueWriteBuffer(d->queue, d->pulse, CL_TRUE, 0, sizeof sent, &sent, 0, NULL,
                                NULL) == CL_SUCCESS &&
           clEnqueueReadBuffer(d->queue, d->pulse, CL_TRUE, 0, sizeof got, &got, 0, NULL, NULL) ==
               CL_SUCCESS &&
           got == sent;
}

/* Could a lost device be the reason? What is wrong with an argument or a kernel is told before. */
static int is_suspect(enum tfm_status status)
{
    return status == TFM_STATUS_BACKEND || status == TFM_STATUS_NOMEM ||
           status == TFM_STATUS_INTERNAL || status == TFM_STATUS_DEVICE_LOST;
}

/* What a call has come to: its own failure, or DEVICE_LOST. `queue`: of an exec, or NULL. */
static enum tfm_status judge(struct tfm__cl_device *d, cl_command_queue queue,
                             enum tfm_status status, const struct tfm_error *own,
                             struct tfm_error *err)
{
    if (status == TFM_STATUS_OK)
        return status;
    if (!is_suspect(status) || answers(d, queue))
        return d->host->error(err, status, "%s", own->text);
    atomic_store(&d->lost, 1);
    return d->host->error(err, TFM_STATUS_DEVICE_LOST,
                          "opencl: %s is lost (%s); open it again, then compile anew over the same "
                          "weights",
                          d->name, own->text);
}

static enum tfm_status still_here(const struct tfm__cl_device *d, struct tfm_error *err)
{
    if (!atomic_load(&d->lost))
        return TFM_STATUS_OK;
    return d->host->error(
        err, TFM_STATUS_DEVICE_LOST,
        "opencl: %s was lost before; open it again, then compile anew over the same weights",
        d->name);
}

/* ---- the slots of the table ---- */

enum tfm_status tfm__cl_guard_alloc(void *device, size_t bytes, void **buffer,
                                    struct tfm_error *err)
{
    struct tfm_error own = {0};
    const enum tfm_status status = still_here(device, err);

    if (status != TFM_STATUS_OK)
        return status;
    return judge(device, NULL, tfm__cl_alloc(device, bytes, buffer, &own), &own, err);
}

enum tfm_status tfm__cl_guard_alloc_zeroed(void *device, size_t bytes, void **buffer,
                                           struct tfm_error *err)
{
    struct tfm_error own = {0};
    const enum tfm_status status = still_here(device, err);

    if (status != TFM_STATUS_OK)
        return status;
    return judge(device, NULL, tfm__cl_alloc_zeroed(device, bytes, buffer, &own), &own, err);
}

enum tfm_status tfm__cl_guard_upload(void *device, const void *src, struct tfm_memory dst,
                                     size_t bytes, struct tfm_error *err)
{
    struct tfm_error own = {0};
    const enum tfm_status status = still_here(device, err);

    if (status != TFM_STATUS_OK)
        return status;
    return judge(device, NULL, tfm__cl_upload(device, src, dst, bytes, &own), &own, err);
}

enum tfm_status tfm__cl_guard_download(void *device, struct tfm_memory src, void *dst, size_t bytes,
                                       struct tfm_error *err)
{
    struct tfm_error own = {0};
    const enum tfm_status status = still_here(device, err);

    if (status != TFM_STATUS_OK)
        return status;
    return judge(device, NULL, tfm__cl_download(device, src, dst, bytes, &own), &own, err);
}

enum tfm_status tfm__cl_guard_copy(void *device, struct tfm_memory src, struct tfm_memory dst,
                                   size_t bytes, struct tfm_error *err)
{
    struct tfm_error own = {0};
    const enum tfm_status status = still_here(device, err);

    if (status != TFM_STATUS_OK)
        return status;
    return judge(device, NULL, tfm__cl_copy(device, src, dst, bytes, &own), &own, err);
}

enum tfm_status tfm__cl_guard_compile(void *device, struct tfm_weights *weights,
                                      const struct tfm_segment *segment,
                                      const struct tfm_capacity *capacity,
                                      struct tfm_program *program, struct tfm_error *err)
{
    struct tfm_error own = {0};
    const enum tfm_status status = still_here(device, err);

    if (status != TFM_STATUS_OK)
        return status;
    return judge(device, NULL, tfm__cl_compile(device, weights, segment, capacity, program, &own),
                 &own, err);
}

enum tfm_status tfm__cl_guard_exec_open(void *device, const struct tfm_program *program,
                                        const struct tfm_exec_memory *memory, void **exec,
                                        struct tfm_error *err)
{
    struct tfm_error own = {0};
    const enum tfm_status status = still_here(device, err);

    if (status != TFM_STATUS_OK)
        return status;
    return judge(device, NULL, tfm__cl_exec_open(device, program, memory, exec, &own), &own, err);
}

enum tfm_status tfm__cl_guard_sync(void *device, struct tfm_error *err)
{
    struct tfm_error own = {0};
    const enum tfm_status status = still_here(device, err);

    if (status != TFM_STATUS_OK)
        return status;
    return judge(device, NULL, tfm__cl_sync(device, &own), &own, err);
}

enum tfm_status tfm__cl_guard_exec_run(void *exec, const struct tfm_rows *rows,
                                       struct tfm_error *err)
{
    const struct tfm__cl_exec *e = exec;
    struct tfm_error own = {0};
    const enum tfm_status status = still_here(e->device, err);

    if (status != TFM_STATUS_OK)
        return status;
    return judge(e->device, e->queue, tfm__cl_exec_run(exec, rows, &own), &own, err);
}
