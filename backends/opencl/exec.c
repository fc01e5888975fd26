/* SPDX-License-Identifier: MIT
 * Exec: one user's kernel objects with all arguments set, the step table on the device, a queue. A run
 * is one upload of its rows, then one launch a step, then one wait; it creates nothing. */
#include <string.h>

#include "backends/opencl/internal.h"
#include "lib/core/checked.h"

/* Work of one part: below this a launch is not worth waking another thread for. Without vectors a part takes 16
 * times as long, and some devices end the loops of a part that has too much to do (docs/portability.md). */
enum { GRAIN = 1 << 17, NARROW_GRAIN = GRAIN / 16, GROUP_GRAIN = 1 << 12 };

atomic_uint_fast64_t tfm__cl_sgemm_calls, tfm__cl_kernel_launches;

static enum tfm_status no_memory(const struct tfm_host *host, struct tfm_error *err)
{
    return host->error(err, TFM_STATUS_NOMEM, "opencl: out of memory for an exec");
}

/* ---- opening ---- */

struct tfm_memory tfm__cl_resolve(const struct tfm__cl_exec *e, const struct tfm__cl_operand *o,
                                  const struct tfm_exec_memory *memory, size_t workspace)
{
    switch (o->place) {
    case TFM__CL_MEMORY:
        return memory->memory[o->tensor];
    case TFM__CL_POOL:
        return (struct tfm_memory){o->pool, o->offset};
    case TFM__CL_WORKSPACE:
        return (struct tfm_memory){memory->workspace.buffer, workspace + o->offset};
    case TFM__CL_GEMM_X:
        return (struct tfm_memory){e->gemm_x, 0};
    case TFM__CL_GEMM_WEIGHT:
        return (struct tfm_memory){e->gemm_weight, 0};
    case TFM__CL_GEMM_PRODUCT:
        return (struct tfm_memory){e->gemm_product, 0};
    case TFM__CL_SCRATCH:
    case TFM__CL_PARTIAL:
    case TFM__CL_ABSENT:
        break;
    }
    return (struct tfm_memory){NULL, 0};
}

enum tfm_status tfm__cl_steps_create(const struct tfm__cl_exec *e,
                                     const struct tfm__cl_launch *launches, uint32_t n,
                                     const struct tfm_exec_memory *memory, size_t workspace,
                                     const cl_mem *buffers, uint32_t n_buffers, cl_mem *made,
                                     struct tfm_error *err)
{
    const struct tfm_host *host = e->device->host;
    cl_int code = CL_SUCCESS;
    size_t bytes;

    if (tfm__mul_size(n + 1u, sizeof(struct tfm_step), &bytes))
        return no_memory(host, err);
    struct tfm_step *steps = host->alloc(bytes);
    if (!steps)
        return no_memory(host, err);
    memset(steps, 0, bytes);
    for (uint32_t i = 0; i < n; i++) {
        const struct tfm__cl_launch *launch = &launches[i];
        steps[i] = launch->step;
        for (uint32_t k = 0; k < TFM_STEP_OPERANDS; k++) {
            steps[i].type[k] = TFM_STEP_NONE;
            if (k >= launch->n_operands)
                continue;
            const struct tfm_memory at =
                tfm__cl_resolve(e, &launch->operands[k], memory, workspace);
            steps[i].at[k] = at.offset;
            steps[i].type[k] = launch->operands[k].type;
            for (uint32_t b = 0; b < n_buffers; b++) {
                if (buffers[b] == at.buffer)
                    steps[i].buffer[k] = b;
            }
        }
    }
    *made = clCreateBuffer(e->device->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, bytes,
                           steps, &code);
    host->free(steps);
    return code == CL_SUCCESS ? TFM_STATUS_OK
                              : tfm__cl_fail(host, err, "clCreateBuffer for steps", code);
}

static enum tfm_status create_rows(struct tfm__cl_exec *e, struct tfm_error *err)
{
    const struct tfm_capacity *c = &e->program->capacity;
    const struct tfm_host *host = e->device->host;
    cl_int code = CL_SUCCESS;
    size_t words;

    if (tfm__mul_size(c->sequences, 3, &words) ||
        tfm__add_size(words, (size_t)c->out_rows + TFM_ROWS_LISTS, &words) ||
        tfm__mul_size(words, sizeof *e->staging, &e->staging_bytes))
        return no_memory(host, err);
    e->staging = host->alloc(e->staging_bytes);
    if (!e->staging)
        return no_memory(host, err);
    memset(e->staging, 0, e->staging_bytes);
    e->rows = clCreateBuffer(e->device->context, CL_MEM_READ_ONLY, e->staging_bytes, NULL, &code);
    return code == CL_SUCCESS ? TFM_STATUS_OK
                              : tfm__cl_fail(host, err, "clCreateBuffer for rows", code);
}

/* Operands, then step table, index, rows, in the group shape local memory: the signature of every
 * kernel. */
static enum tfm_status create_kernel(struct tfm__cl_exec *e, uint32_t index,
                                     const struct tfm_exec_memory *memory, struct tfm_error *err)
{
    const struct tfm__cl_launch *launch = &e->program->launches[index];
    const cl_uint number = index;
    cl_program program = NULL;
    cl_int code = CL_SUCCESS;
    cl_uint a = 0;

    const enum tfm_status status = tfm__cl_program_of(e->device, &launch->kernel, &program, err);
    if (status != TFM_STATUS_OK)
        return status;
    const cl_kernel kernel = clCreateKernel(program, launch->kernel.name, &code);
    if (code != CL_SUCCESS)
        return tfm__cl_fail_kernel(e->device->host, err, "clCreateKernel", launch->kernel.name,
                                   code);
    e->kernels[index] = kernel;
    for (; a < launch->n_operands && code == CL_SUCCESS; a++) {
        const cl_mem buffer = tfm__cl_resolve(e, &launch->operands[a], memory, 0).buffer;
        code = clSetKernelArg(kernel, a, sizeof buffer, &buffer);
    }
    if (code == CL_SUCCESS)
        code = clSetKernelArg(kernel, a++, sizeof e->steps, &e->steps);
    if (code == CL_SUCCESS)
        code = clSetKernelArg(kernel, a++, sizeof number, &number);
    if (code == CL_SUCCESS)
        code = clSetKernelArg(kernel, a++, sizeof e->rows, &e->rows);
    if (code == CL_SUCCESS && launch->step.local_floats)
        code = clSetKernelArg(kernel, a, launch->step.local_floats * sizeof(float), NULL);
    return code == CL_SUCCESS ? TFM_STATUS_OK
                              : tfm__cl_fail(e->device->host, err, "clSetKernelArg", code);
}

static enum tfm_status create_kernels(struct tfm__cl_exec *e, const struct tfm_exec_memory *memory,
                                      size_t workspace, struct tfm_error *err)
{
    const struct tfm__cl_program *p = e->program;
    enum tfm_status status = tfm__cl_steps_create(e, p->launches, p->n_launches, memory, workspace,
                                                  NULL, 0, &e->steps, err);

    for (uint32_t i = 0; i < p->n_launches && status == TFM_STATUS_OK; i++)
        status = create_kernel(e, i, memory, err);
    return status;
}

/* The matrices of the GEMMs: parts of the workspace with an offset of 0, which saves CLBlast a copy. */
static enum tfm_status create_gemm(struct tfm__cl_exec *e, struct tfm_memory workspace,
                                   struct tfm_error *err)
{
    const struct tfm__cl_gemm_sizes *g = &e->program->gemm;
    cl_mem *const made[] = {&e->gemm_x, &e->gemm_weight, &e->gemm_product, &e->gemm_temp};
    const size_t bytes[] = {g->x, g->weight, g->product, g->temp};
    cl_buffer_region region = {.origin = workspace.offset};
    cl_int code = CL_SUCCESS;

    for (size_t i = 0; i < sizeof bytes / sizeof *bytes && g->x > 0; i++) {
        region.size = bytes[i];
        *made[i] = clCreateSubBuffer(workspace.buffer, CL_MEM_READ_WRITE,
                                     CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
        if (code != CL_SUCCESS)
            return tfm__cl_fail(e->device->host, err, "clCreateSubBuffer", code);
        region.origin += bytes[i];
    }
    return TFM_STATUS_OK;
}

/* The buffers of which a run may use little: those of caches. */
static void find_sparse(struct tfm__cl_exec *e, const struct tfm_exec_memory *memory)
{
    const struct tfm__cl_program *p = e->program;

    for (uint32_t i = 0; i < p->n_launches; i++) {
        for (uint32_t k = 0; k < p->launches[i].n_operands; k++) {
            const struct tfm__cl_operand *o = &p->launches[i].operands[k];
            void *const place = o->place == TFM__CL_MEMORY
                                    ? tfm__cl_sparse_find(memory->memory[o->tensor].buffer)
                                    : NULL;
            uint32_t known = 0;
            while (known < e->n_sparse && e->sparse[known] != place)
                known++;
            if (place && known == e->n_sparse && known < TFM__CL_FEW_BUFFERS)
                e->sparse[e->n_sparse++] = place;
        }
    }
}

/* On objects of the caller a run comes after what he has enqueued before: it goes to his queue. */
static enum tfm_status take_queue(struct tfm__cl_exec *e, struct tfm_error *err)
{
    const struct tfm__cl_device *d = e->device;
    cl_int code = CL_SUCCESS;

    if (!d->lent) {
        e->queue = clCreateCommandQueue(d->context, d->id, tfm__cl_profile_queue(d), &code);
        return code == CL_SUCCESS ? TFM_STATUS_OK
                                  : tfm__cl_fail(d->host, err, "clCreateCommandQueue", code);
    }
    code = clRetainCommandQueue(d->queue);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(d->host, err, "clRetainCommandQueue", code);
    e->queue = d->queue;
    return TFM_STATUS_OK;
}

enum tfm_status tfm__cl_exec_open(void *device, const struct tfm_program *program,
                                  const struct tfm_exec_memory *memory, void **exec,
                                  struct tfm_error *err)
{
    struct tfm__cl_device *d = device;
    const struct tfm__cl_program *p = program->impl;
    const size_t align = d->base_align;
    const size_t workspace = (memory->workspace.offset + align - 1) / align * align;
    size_t bytes;
    struct tfm__cl_exec *e = d->host->alloc(sizeof *e);

    if (!e)
        return no_memory(d->host, err);
    memset(e, 0, sizeof *e);
    e->device = d;
    e->program = p;
    enum tfm_status status = TFM_STATUS_OK;
    if (tfm__mul_size(p->n_launches + 1u, sizeof *e->kernels, &bytes) ||
        !(e->kernels = d->host->alloc(bytes)))
        status = no_memory(d->host, err);
    else
        memset(e->kernels, 0, bytes);
    if (status == TFM_STATUS_OK)
        status = take_queue(e, err);
    if (status == TFM_STATUS_OK)
        status = create_gemm(e, (struct tfm_memory){memory->workspace.buffer, workspace}, err);
    find_sparse(e, memory);
    if (status == TFM_STATUS_OK)
        status = create_rows(e, err);
    if (status == TFM_STATUS_OK)
        status = tfm__cl_few_open(e, memory, workspace, err);
    e->nodes_run = p->nodes_run || !e->few;
    if (status == TFM_STATUS_OK && e->nodes_run)
        status = create_kernels(e, memory, workspace, err);
    if (status == TFM_STATUS_OK)
        status = tfm__cl_profile_open(e, err);
    if (status != TFM_STATUS_OK) {
        tfm__cl_exec_close(e);
        return status;
    }
    *exec = e;
    return TFM_STATUS_OK;
}

void tfm__cl_exec_close(void *exec)
{
    struct tfm__cl_exec *e = exec;
    const cl_mem memory[] = {e->steps,       e->rows,         e->gemm_x,
                             e->gemm_weight, e->gemm_product, e->gemm_temp};

    tfm__cl_few_close(e);
    tfm__cl_profile_close(e);
    for (uint32_t i = 0; e->kernels && i < e->program->n_launches; i++) {
        if (e->kernels[i])
            (void)clReleaseKernel(e->kernels[i]);
    }
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        if (memory[i])
            (void)clReleaseMemObject(memory[i]);
    }
    if (e->queue)
        (void)clReleaseCommandQueue(e->queue);
    e->device->host->free(e->kernels);
    e->device->host->free(e->staging);
    e->device->host->free(e);
}

/* ---- running ---- */

static enum tfm_status check_rows(const struct tfm__cl_exec *e, const struct tfm_rows *rows,
                                  struct tfm_error *err)
{
    const struct tfm_capacity *c = &e->program->capacity;

    if (rows->n <= c->rows && rows->n_seq <= c->sequences && rows->n_out <= c->out_rows)
        return TFM_STATUS_OK;
    return e->device->host->error(
        err, TFM_STATUS_INVALID_ARGUMENT,
        "opencl: %u rows, %u sequences, %u kept rows; the plan holds %u, %u, %u", rows->n,
        rows->n_seq, rows->n_out, c->rows, c->sequences, c->out_rows);
}

void tfm__cl_rows_write(const struct tfm__cl_exec *e, const struct tfm_rows *rows, int32_t *to)
{
    const struct tfm_capacity *c = &e->program->capacity;

    to[TFM_ROWS_N] = (int32_t)rows->n;
    to[TFM_ROWS_N_SEQ] = (int32_t)rows->n_seq;
    to[TFM_ROWS_N_OUT] = (int32_t)rows->n_out;
    to[TFM_ROWS_S] = (int32_t)c->sequences;
    to += TFM_ROWS_LISTS;
    if (rows->n_seq) {
        memcpy(to, rows->slot, rows->n_seq * sizeof *to);
        memcpy(to + c->sequences, rows->start, rows->n_seq * sizeof *to);
        memcpy(to + 2 * (size_t)c->sequences, rows->past, rows->n_seq * sizeof *to);
    }
    if (rows->n_out)
        memcpy(to + 3 * (size_t)c->sequences, rows->out, rows->n_out * sizeof *to);
}

static enum tfm_status upload_rows(struct tfm__cl_exec *e, const struct tfm_rows *rows,
                                   struct tfm_error *err)
{
    tfm__cl_rows_write(e, rows, e->staging);
    const cl_int code = clEnqueueWriteBuffer(e->queue, e->rows, CL_FALSE, 0, e->staging_bytes,
                                             e->staging, 0, NULL, NULL);
    return code == CL_SUCCESS ? TFM_STATUS_OK
                              : tfm__cl_fail(e->device->host, err, "clEnqueueWriteBuffer", code);
}

enum tfm_status tfm__cl_launch(struct tfm__cl_exec *e, uint32_t index, uint64_t rows,
                               struct tfm_error *err)
{
    const uint32_t group = e->program->launches[index].step.group;
    const uint64_t grain = group ? GROUP_GRAIN : e->device->settings.narrow ? NARROW_GRAIN : GRAIN;
    const uint64_t wanted = rows * e->program->launches[index].cost / grain;
    const size_t parts = wanted < 1                  ? 1
                         : wanted < e->device->parts ? (size_t)wanted
                                                     : e->device->parts;
    const size_t local = group ? group : 1, global = parts * local;
    cl_event *event = e->profile ? tfm__cl_profile_launch(e, index, parts) : NULL;
    const cl_int code = clEnqueueNDRangeKernel(e->queue, e->kernels[index], 1, NULL, &global,
                                               &local, 0, NULL, event);

    if (code != CL_SUCCESS)
        return tfm__cl_fail_kernel(e->device->host, err, "clEnqueueNDRangeKernel",
                                   e->program->launches[index].kernel.name, code);
    atomic_fetch_add_explicit(&tfm__cl_kernel_launches, 1, memory_order_relaxed);
    return TFM_STATUS_OK;
}

static enum tfm_status run_node(struct tfm__cl_exec *e, const struct tfm__cl_node *node,
                                const struct tfm_rows *rows, struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;

    if (node->op->run)
        return node->op->run(e, node, rows, err);
    for (uint32_t i = 0; i < node->count && status == TFM_STATUS_OK; i++) {
        const struct tfm_step *step = &e->program->launches[node->first + i].step;
        status = tfm__cl_launch(e, node->first + i,
                                step->rows == TFM_STEP_OUT_ROWS ? rows->n_out : rows->n, err);
    }
    return status;
}

static enum tfm_status run_nodes(struct tfm__cl_exec *e, const struct tfm_rows *rows,
                                 struct tfm_error *err)
{
    enum tfm_status status = upload_rows(e, rows, err);

    for (uint32_t i = 0; i < e->program->n_nodes && status == TFM_STATUS_OK; i++)
        status = run_node(e, &e->program->nodes[i], rows, err);
    return status;
}

/* A sequence of so many cells fills the small pages of its caches. */
enum { LONG = 256 };

/* Huge pages that a run makes, 0.15 to 0.4 ms each: that many, and one for so many rows. */
enum { PAGES = 2, ROWS_A_PAGE = 8 };

static void fill_sparse(const struct tfm__cl_exec *e, const struct tfm_rows *rows)
{
    int64_t longest = 0;

    for (uint32_t s = 0; s < rows->n_seq; s++)
        longest = rows->past[s] > longest ? rows->past[s] : longest;
    for (uint32_t i = 0; i < e->n_sparse && longest + rows->n >= LONG; i++)
        tfm__cl_sparse_fill(e->sparse[i], PAGES + rows->n / ROWS_A_PAGE);
}

enum tfm_status tfm__cl_exec_run(void *exec, const struct tfm_rows *rows, struct tfm_error *err)
{
    struct tfm__cl_exec *e = exec;
    const int few = e->few && rows->n <= TFM__CL_FEW_ROWS && rows->n_out <= TFM__CL_FEW_ROWS;
    enum tfm_status status = check_rows(e, rows, err);

    tfm__cl_profile_begin(e, rows);
    if (status == TFM_STATUS_OK)
        fill_sparse(e, rows);
    if (status == TFM_STATUS_OK && few)
        status = tfm__cl_few_run(e, rows, err);
    /* no rows: everything is warmed that a run may come to */
    if (status == TFM_STATUS_OK && (!few || (rows->n == 0 && e->nodes_run)))
        status = run_nodes(e, rows, err);
    /* also after a failure: nothing of this run may be under way when the caller goes on */
    const cl_int code = clFinish(e->queue);
    tfm__cl_profile_end(e);
    if (status == TFM_STATUS_OK && code != CL_SUCCESS)
        status = tfm__cl_fail(e->device->host, err, "clFinish", code);
    return status;
}
