/* SPDX-License-Identifier: MIT
 * What the device reads and computes at most, by kernels/limits.cl: the yardstick of the table of TFM_PROFILE. */
#include "backends/opencl/profile.h"

enum {
    TRIES = 4,
    BLOCK = 256 << 20,   /* bytes that are read: more than caches hold */
    ITEMS_OF_GPU = 2048, /* for each compute unit */
    ROUNDS_OF_CPU = 1 << 20,
    ROUNDS_OF_GPU = 1 << 12,
    SUMS = 12, /* of an item and round, vectors of 16 */
};

struct bench {
    struct tfm__cl_device *device;
    cl_command_queue queue;
    cl_kernel kernel;
    size_t items;
};

/* Seconds of the fastest of several launches; 0 when one fails. */
static double fastest(const struct bench *b)
{
    const size_t one = 1; /* on a CPU an item is a work-group, or one core would get them all */
    const size_t *local = b->device->kind == TFM_DEVICE_CPU ? &one : NULL;
    double best = 0;

    for (int i = 0; i < TRIES; i++) {
        cl_event event = NULL;
        cl_ulong begin = 0, end = 0;
        cl_int code =
            clEnqueueNDRangeKernel(b->queue, b->kernel, 1, NULL, &b->items, local, 0, NULL, &event);
        if (code == CL_SUCCESS)
            code = clFinish(b->queue);
        if (code == CL_SUCCESS)
            code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof begin, &begin,
                                           NULL);
        if (code == CL_SUCCESS)
            code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
        if (event)
            (void)clReleaseEvent(event);
        if (code != CL_SUCCESS || end <= begin)
            return 0;
        const double seconds = 1e-9 * (double)(end - begin);
        best = i == 0 || seconds < best ? seconds : best;
    }
    return best;
}

static cl_kernel kernel_of(struct tfm__cl_device *d, const char *name)
{
    const struct tfm__cl_kernel wanted = {"limits.cl", name, NULL};
    struct tfm_error err = {0};
    cl_program program = NULL;

    if (tfm__cl_program_of(d, &wanted, &program, &err) != TFM_STATUS_OK)
        return NULL;
    return clCreateKernel(program, name, NULL);
}

static double measure_read(struct bench *b, cl_mem sink)
{
    size_t bytes = BLOCK < b->device->max_alloc ? BLOCK : b->device->max_alloc;
    const cl_ulong each = bytes / (16 * sizeof(float)) / b->items / 4 * 4;
    const int side_by_side = b->device->kind != TFM_DEVICE_CPU;
    const cl_ulong first = side_by_side ? 1 : each, step = side_by_side ? b->items : 1;
    const float zero = 0;
    double seconds = 0;
    cl_int code;

    b->kernel = kernel_of(b->device, "tfm_run_limit_read");
    bytes = (size_t)each * 16 * sizeof(float) * b->items;
    cl_mem block =
        bytes ? clCreateBuffer(b->device->context, CL_MEM_READ_WRITE, bytes, NULL, &code) : NULL;
    if (b->kernel && block &&
        clEnqueueFillBuffer(b->queue, block, &zero, sizeof zero, 0, bytes, 0, NULL, NULL) ==
            CL_SUCCESS &&
        clSetKernelArg(b->kernel, 0, sizeof block, &block) == CL_SUCCESS &&
        clSetKernelArg(b->kernel, 1, sizeof sink, &sink) == CL_SUCCESS &&
        clSetKernelArg(b->kernel, 2, sizeof each, &each) == CL_SUCCESS &&
        clSetKernelArg(b->kernel, 3, sizeof first, &first) == CL_SUCCESS &&
        clSetKernelArg(b->kernel, 4, sizeof step, &step) == CL_SUCCESS)
        seconds = fastest(b);
    if (block)
        (void)clReleaseMemObject(block);
    if (b->kernel)
        (void)clReleaseKernel(b->kernel);
    return seconds > 0 ? (double)bytes / seconds : 0;
}

static double measure_fma(struct bench *b, cl_mem sink)
{
    const cl_uint each = b->device->kind == TFM_DEVICE_CPU ? ROUNDS_OF_CPU : ROUNDS_OF_GPU;
    const cl_float factor = 0.5f;
    double seconds = 0;

    b->kernel = kernel_of(b->device, "tfm_run_limit_fma");
    if (b->kernel && clSetKernelArg(b->kernel, 0, sizeof sink, &sink) == CL_SUCCESS &&
        clSetKernelArg(b->kernel, 1, sizeof each, &each) == CL_SUCCESS &&
        clSetKernelArg(b->kernel, 2, sizeof factor, &factor) == CL_SUCCESS)
        seconds = fastest(b);
    if (b->kernel)
        (void)clReleaseKernel(b->kernel);
    return seconds > 0 ? 2.0 * 16 * SUMS * (double)each * (double)b->items / seconds : 0;
}

void tfm__cl_limits(struct tfm__cl_device *d, double *read, double *fma)
{
    struct bench b = {.device = d};
    cl_int code = CL_SUCCESS;

    *read = 0;
    *fma = 0;
    b.items = d->kind == TFM_DEVICE_CPU ? d->units : (size_t)d->units * ITEMS_OF_GPU;
    b.queue = clCreateCommandQueue(d->context, d->id, CL_QUEUE_PROFILING_ENABLE, &code);
    if (code != CL_SUCCESS)
        return;
    cl_mem sink =
        clCreateBuffer(d->context, CL_MEM_WRITE_ONLY, b.items * sizeof(float), NULL, &code);
    if (code == CL_SUCCESS) {
        *read = measure_read(&b, sink);
        *fma = measure_fma(&b, sink);
        (void)clReleaseMemObject(sink);
    }
    (void)clReleaseCommandQueue(b.queue);
}
