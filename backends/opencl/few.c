/* SPDX-License-Identifier: MIT
 * Runs of few rows: kernels/persistent.cl over the phases of the program, in one launch where the device has
 * shown that its work-groups run at the same time, else phase by phase. Both give the same bits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/few.h"
#include "lib/core/checked.h"

/* Work of one part of a launched phase: below this it is not worth waking another thread for. */
enum { GRAIN = 1 << 17 };

/* Runs that use launches after one that no try could end, at most: 1, 2, 4, ... */
enum { WAIT_MOST = 64 };

/* Launches of one run, each from the step on that the one before came to. A part that was late once is there
 * at the second or third; one whose processor is taken for a time slice is not, and launches need no second
 * part. */
enum { TRIES = 4 };

struct tfm__cl_stall tfm__cl_stall;
atomic_uint_fast64_t tfm__cl_persistent_runs, tfm__cl_persistent_bails;

/* Two persistent kernels at once would wait for each other's processors. */
static pthread_mutex_t in_flight = PTHREAD_MUTEX_INITIALIZER;

static void say(const struct tfm__cl_device *d, const char *text)
{
    d->host->log(TFM_LOG_INFO, "opencl", text);
}

static enum tfm_status no_memory(const struct tfm_host *host, struct tfm_error *err)
{
    return host->error(err, TFM_STATUS_NOMEM, "opencl: out of memory for the phases of an exec");
}

/* ---- launching ---- */

static enum tfm_status launch(const struct tfm__cl_exec *e, cl_mem steps, cl_uint first,
                              cl_uint end, cl_uint parts, cl_uint polls, size_t groups,
                              cl_event *event, struct tfm_error *err)
{
    const struct tfm__cl_few *f = e->few;
    const cl_uint stride = steps == f->steps; /* the probe has one step, again and again */
    const cl_uint values[] = {first, end, stride, parts, polls};
    const size_t local = 1;
    cl_int code = clSetKernelArg(f->kernel, TFM__CL_FEW_BUFFERS, sizeof steps, &steps);

    for (cl_uint i = 0; i < 5 && code == CL_SUCCESS; i++)
        code = clSetKernelArg(f->kernel, TFM__CL_FEW_BUFFERS + 2 + i, sizeof values[i], &values[i]);
    if (code != CL_SUCCESS)
        return tfm__cl_fail_kernel(e->device->host, err, "clSetKernelArg", "tfm_run_persistent",
                                   code);
    code = clEnqueueNDRangeKernel(e->queue, f->kernel, 1, NULL, &groups, &local, 0, NULL, event);
    if (code != CL_SUCCESS)
        return tfm__cl_fail_kernel(e->device->host, err, "clEnqueueNDRangeKernel",
                                   "tfm_run_persistent", code);
    atomic_fetch_add_explicit(&tfm__cl_kernel_launches, 1, memory_order_relaxed);
    return TFM_STATUS_OK;
}

/* Phases from step `first` on, one launch each. */
static enum tfm_status run_phases(const struct tfm__cl_exec *e, const struct tfm_rows *rows,
                                  uint32_t first, struct tfm_error *err)
{
    const struct tfm__cl_phases *phases = &e->program->phases;
    enum tfm_status status = TFM_STATUS_OK;

    while (first < phases->n && status == TFM_STATUS_OK) {
        uint32_t end = first;
        uint64_t cost = 0;
        do {
            const struct tfm__cl_launch *step = &phases->steps[end];
            cost += step->cost * (step->step.rows == TFM_STEP_OUT_ROWS ? rows->n_out : rows->n);
        } while (!phases->steps[end++].step.barrier);
        const uint64_t wanted = cost / GRAIN, most = e->device->units;
        const cl_uint parts = (cl_uint)(wanted < 1 ? 1 : wanted < most ? wanted : most);
        cl_event *event =
            e->profile ? tfm__cl_profile_phase(e, &phases->steps[first], end - first, parts) : NULL;
        status = launch(e, e->few->steps, first, end, parts, 0, parts, event, err);
        first = end;
    }
    return status;
}

enum tfm_status tfm__cl_few_upload(const struct tfm__cl_exec *e, struct tfm_error *err)
{
    const struct tfm__cl_few *f = e->few;
    const cl_int code = clEnqueueWriteBuffer(e->queue, f->control, CL_FALSE, 0, f->bytes,
                                             f->staging, 0, NULL, NULL);
    return code == CL_SUCCESS ? TFM_STATUS_OK
                              : tfm__cl_fail(e->device->host, err, "clEnqueueWriteBuffer", code);
}

enum tfm_status tfm__cl_few_persist(const struct tfm__cl_exec *e, cl_mem steps, uint32_t first,
                                    uint32_t n, uint32_t parts, uint32_t groups, uint32_t polls,
                                    uint32_t *left, struct tfm_error *err)
{
    int32_t each[TFM_CONTROL_PARTS];
    enum tfm_status status = launch(e, steps, first, n, parts, polls, groups, NULL, err);

    if (status != TFM_STATUS_OK)
        return status;
    const cl_int code =
        clEnqueueReadBuffer(e->queue, e->few->control, CL_TRUE, TFM_CONTROL_LEFT * sizeof *each,
                            groups * sizeof *each, each, 0, NULL, NULL);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(e->device->host, err, "clEnqueueReadBuffer", code);
    for (uint32_t i = 1; i < groups; i++) {
        if (each[i] != each[0])
            return e->device->host->error(
                err, TFM_STATUS_BACKEND,
                "opencl: part %u of the persistent kernel left at step %d, part 0 at %d; set "
                "TFM_OPENCL_PERSISTENT=off and report this",
                i, (int)each[i], (int)each[0]);
    }
    *left = (uint32_t)each[0];
    return TFM_STATUS_OK;
}

/* Twice as many runs as last time use launches. */
static void hold_back(struct tfm__cl_few *f)
{
    f->penalty = f->penalty == 0 ? 1 : f->penalty < WAIT_MOST ? 2 * f->penalty : WAIT_MOST;
    f->wait = atomic_load(&tfm__cl_stall.eager) ? 0 : f->penalty;
}

/* A run that no try could end costs a wait of 1, 2, 4, ... runs; one that the first ended halves the next. */
static void note(struct tfm__cl_few *f, int tries, int ended)
{
    atomic_fetch_add_explicit(&tfm__cl_persistent_runs, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&tfm__cl_persistent_bails, (uint64_t)(tries - ended),
                              memory_order_relaxed);
    if (!ended)
        hold_back(f);
    else if (tries == 1)
        f->penalty /= 2;
}

/* Until all is done, or a few tries did not end it. */
static enum tfm_status persist(struct tfm__cl_exec *e, uint32_t *left, struct tfm_error *err)
{
    const struct tfm__cl_device *d = e->device;
    const uint32_t n = e->program->phases.n;
    enum tfm_status status = TFM_STATUS_OK;
    int tries = 0;

    while (*left < n && tries < TRIES && status == TFM_STATUS_OK) {
        if (tries++ > 0)
            status = tfm__cl_few_upload(e, err); /* a fresh barrier */
        if (status == TFM_STATUS_OK)
            status = tfm__cl_few_persist(e, e->few->steps, *left, n, d->few_parts, d->few_parts,
                                         d->few_polls, left, err);
    }
    if (status == TFM_STATUS_OK)
        note(e->few, tries, *left == n);
    return status;
}

/* Tries it in one launch; *left = the step from which on there is work to do. */
static enum tfm_status try_persistent(struct tfm__cl_exec *e, uint32_t *left, struct tfm_error *err)
{
    struct tfm__cl_device *d = e->device;
    struct tfm__cl_few *f = e->few;
    enum tfm_status status = TFM_STATUS_OK;

    if (e->profile) /* the times of phases are those of launches */
        return TFM_STATUS_OK;
    if (f->wait > 0) {
        f->wait--;
        return TFM_STATUS_OK;
    }
    if (d->settings.persistent == TFM__CL_PERSISTENT_OFF || pthread_mutex_trylock(&in_flight))
        return TFM_STATUS_OK;
    if (!d->few_proven) {
        status = tfm__cl_few_prove(e, err);
        if (!d->few_proven)
            hold_back(f);
        if (status == TFM_STATUS_OK)
            status = tfm__cl_few_upload(e, err); /* a fresh barrier */
    }
    if (status == TFM_STATUS_OK && d->few_proven)
        status = persist(e, left, err);
    pthread_mutex_unlock(&in_flight);
    return status;
}

enum tfm_status tfm__cl_few_run(struct tfm__cl_exec *e, const struct tfm_rows *rows,
                                struct tfm_error *err)
{
    struct tfm__cl_few *f = e->few;
    uint32_t left = 0;

    f->staging[TFM_CONTROL_BARRIER] = 0;
    f->staging[TFM_CONTROL_STALL] = atomic_load(&tfm__cl_stall.step);
    f->staging[TFM_CONTROL_STALL + 1] = atomic_load(&tfm__cl_stall.part);
    f->staging[TFM_CONTROL_STALL + 2] = atomic_load(&tfm__cl_stall.polls);
    tfm__cl_rows_write(e, rows, f->staging + TFM_CONTROL_ROWS);
    enum tfm_status status = tfm__cl_few_upload(e, err);
    if (status == TFM_STATUS_OK)
        status = try_persistent(e, &left, err);
    return status == TFM_STATUS_OK ? run_phases(e, rows, left, err) : status;
}

/* ---- opening ---- */

/* The buffers that operands lie in; 0 when there are too many. */
static int list_buffers(const struct tfm__cl_exec *e, const struct tfm_exec_memory *memory,
                        cl_mem *buffers, uint32_t *n)
{
    const struct tfm__cl_phases *phases = &e->program->phases;

    for (uint32_t i = 0; i < phases->n; i++) {
        for (uint32_t k = 0; k < phases->steps[i].n_operands; k++) {
            const cl_mem buffer =
                tfm__cl_resolve(e, &phases->steps[i].operands[k], memory, 0).buffer;
            uint32_t b = 0;
            while (b < *n && buffers[b] != buffer)
                b++;
            if (!buffer || b < *n)
                continue;
            if (*n == TFM__CL_FEW_BUFFERS)
                return 0;
            buffers[(*n)++] = buffer;
        }
    }
    return 1;
}

static enum tfm_status create_control(struct tfm__cl_exec *e, struct tfm_error *err)
{
    struct tfm__cl_few *f = e->few;
    cl_int code = CL_SUCCESS;

    if (tfm__add_size(e->staging_bytes, TFM_CONTROL_ROWS * sizeof *f->staging, &f->bytes) ||
        !(f->staging = e->device->host->alloc(f->bytes)))
        return no_memory(e->device->host, err);
    memset(f->staging, 0, f->bytes);
    f->control = clCreateBuffer(e->device->context, CL_MEM_READ_WRITE, f->bytes, NULL, &code);
    return code == CL_SUCCESS
               ? TFM_STATUS_OK
               : tfm__cl_fail(e->device->host, err, "clCreateBuffer for phases", code);
}

static enum tfm_status create_kernel(struct tfm__cl_exec *e, const cl_mem *buffers, uint32_t n,
                                     struct tfm_error *err)
{
    const struct tfm__cl_kernel kernel = {"persistent.cl", "tfm_run_persistent",
                                          e->program->phases.options};
    struct tfm__cl_few *f = e->few;
    cl_program program = NULL;
    cl_int code = CL_SUCCESS;
    const enum tfm_status status = tfm__cl_program_of(e->device, &kernel, &program, err);

    if (status != TFM_STATUS_OK)
        return status;
    f->kernel = clCreateKernel(program, kernel.name, &code);
    if (code != CL_SUCCESS)
        return tfm__cl_fail_kernel(e->device->host, err, "clCreateKernel", kernel.name, code);
    for (cl_uint i = 0; i < TFM__CL_FEW_BUFFERS && code == CL_SUCCESS; i++)
        code = clSetKernelArg(f->kernel, i, sizeof *buffers, &buffers[i < n ? i : 0]);
    if (code == CL_SUCCESS)
        code = clSetKernelArg(f->kernel, TFM__CL_FEW_BUFFERS + 1, sizeof f->control, &f->control);
    return code == CL_SUCCESS
               ? TFM_STATUS_OK
               : tfm__cl_fail_kernel(e->device->host, err, "clSetKernelArg", kernel.name, code);
}

enum tfm_status tfm__cl_few_open(struct tfm__cl_exec *e, const struct tfm_exec_memory *memory,
                                 size_t workspace, struct tfm_error *err)
{
    const struct tfm__cl_phases *phases = &e->program->phases;
    struct tfm__cl_device *d = e->device;
    cl_mem buffers[TFM__CL_FEW_BUFFERS];
    uint32_t n = 0;
    enum tfm_status status;

    if (phases->n == 0)
        return TFM_STATUS_OK;
    if (!list_buffers(e, memory, buffers, &n)) {
        char text[120];
        snprintf(text, sizeof text,
                 "runs of few rows: launches, no phases: operands lie in more than %d buffers",
                 TFM__CL_FEW_BUFFERS);
        say(d, text);
        return TFM_STATUS_OK;
    }
    e->few = d->host->alloc(sizeof *e->few);
    if (!e->few)
        return no_memory(d->host, err);
    memset(e->few, 0, sizeof *e->few);
    status = tfm__cl_steps_create(e, phases->steps, phases->n, memory, workspace, buffers, n,
                                  &e->few->steps, err);
    const struct tfm__cl_launch nothing = {.step = {.barrier = 1, .patience = 1}};
    if (status == TFM_STATUS_OK)
        status = tfm__cl_steps_create(e, &nothing, 1, NULL, 0, NULL, 0, &e->few->nothing, err);
    if (status == TFM_STATUS_OK)
        status = create_control(e, err);
    if (status == TFM_STATUS_OK)
        status = create_kernel(e, buffers, n, err);
    return status;
}

void tfm__cl_few_close(struct tfm__cl_exec *e)
{
    struct tfm__cl_few *f = e->few;

    if (!f)
        return;
    if (f->kernel)
        (void)clReleaseKernel(f->kernel);
    if (f->steps)
        (void)clReleaseMemObject(f->steps);
    if (f->nothing)
        (void)clReleaseMemObject(f->nothing);
    if (f->control)
        (void)clReleaseMemObject(f->control);
    e->device->host->free(f->staging);
    e->device->host->free(f);
    e->few = NULL;
}
