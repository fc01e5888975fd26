/* SPDX-License-Identifier: MIT
 * Preloaded in front of libOpenCL when Oclgrind 21.10 looks for uninitialized memory (uninitialized.sh). It knows which
 * bytes of a buffer a kernel has written; of the host it knows only writes of a whole buffer: a part makes it forget
 * the rest, and a new buffer is unknown to it. So a buffer is written as a whole once, then made unwritten by a
 * kernel, and every later write, copy, fill and mapping of the host becomes a kernel that copies. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes are copied as structs, as they are, written or not, and none of it is a report. from == to: they become those of
 * an array that nobody has written. */
static const char *const source =
    "struct large { uchar byte[4096]; };\n"
    "struct small { uchar byte[64]; };\n"
    "struct one { uchar byte; };\n"
    "#define COPY(type) \\\n"
    "    for (; i + sizeof(struct type) <= n; i += sizeof(struct type)) { \\\n"
    "        if (from == to) \\\n"
    "            *(__global struct type *)(to + i) = *(struct type *)unwritten; \\\n"
    "        else \\\n"
    "            *(__global struct type *)(to + i) = *(__global const struct type *)(from + i); "
    "\\\n"
    "    }\n"
    "__kernel void host_writes(__global uchar *to, __global const uchar *from, ulong n)\n"
    "{\n"
    "    uchar unwritten[4096];\n"
    "    ulong i = 0;\n"
    "    COPY(large)\n"
    "    COPY(small)\n"
    "    COPY(one)\n"
    "}\n";

static struct copier { /* one for each context */
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    struct copier *next;
} * copiers;

static struct mapping {
    cl_mem buffer;
    unsigned char *memory;
    size_t offset, bytes;
    cl_map_flags flags;
    struct mapping *next;
} * mappings;

static void must(cl_int code, const char *what)
{
    if (code != CL_SUCCESS) {
        fprintf(stderr, "host_writes: %s: error %d\n", what, code);
        abort();
    }
}

/* The function behind one of those below: in the library that is in memory already. */
static void *real(const char *name)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_LOCAL);
    void *found = library ? dlsym(library, name) : NULL;

    must(found ? CL_SUCCESS : -1, name);
    return found;
}

typedef cl_int(CL_API_CALL *write_function)(cl_command_queue, cl_mem, cl_bool, size_t, size_t,
                                            const void *, cl_uint, const cl_event *, cl_event *);
typedef cl_mem(CL_API_CALL *create_function)(cl_context, cl_mem_flags, size_t, void *, cl_int *);

static cl_mem create(cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *code)
{
    create_function next;
    *(void **)&next = real("clCreateBuffer");
    return next(context, flags, bytes, host, code);
}

static void write_whole(cl_command_queue queue, cl_mem buffer, size_t bytes, const void *from)
{
    write_function next;
    *(void **)&next = real("clEnqueueWriteBuffer");
    must(next(queue, buffer, CL_TRUE, 0, bytes, from, 0, NULL, NULL), "write");
}

static const struct copier *copier_of(cl_context context)
{
    cl_device_id device;
    cl_int code = CL_SUCCESS;

    for (const struct copier *c = copiers; c; c = c->next) {
        if (c->context == context)
            return c;
    }
    struct copier *copier = calloc(1, sizeof *copier);
    must(copier ? CL_SUCCESS : -1, "memory");
    copier->context = context;
    must(clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof device, &device, NULL), "device");
    copier->queue = clCreateCommandQueue(context, device, 0, &code);
    must(code, "queue");
    copier->program = clCreateProgramWithSource(context, 1, (const char **)&source, NULL, &code);
    must(code, "program");
    must(clBuildProgram(copier->program, 1, &device, "-cl-opt-disable", NULL, NULL), "build");
    copier->next = copiers;
    copiers = copier;
    return copier;
}

static cl_context context_of(cl_mem buffer)
{
    cl_context context = NULL;
    must(clGetMemObjectInfo(buffer, CL_MEM_CONTEXT, sizeof context, &context, NULL), "context");
    return context;
}

/* from NULL: `to` becomes unwritten. */
static void copy(cl_mem to, size_t to_offset, cl_mem from, size_t from_offset, size_t bytes)
{
    const struct copier *copier = copier_of(context_of(to));
    const cl_ulong n = bytes;
    const size_t one = 1;
    cl_int code = CL_SUCCESS;
    cl_buffer_region part = {to_offset, bytes};

    if (!bytes)
        return;
    cl_mem target = clCreateSubBuffer(to, 0, CL_BUFFER_CREATE_TYPE_REGION, &part, &code);
    must(code, "part");
    part.origin = from_offset;
    cl_mem origin =
        from ? clCreateSubBuffer(from, 0, CL_BUFFER_CREATE_TYPE_REGION, &part, &code) : target;
    must(code, "part");
    cl_kernel kernel = clCreateKernel(copier->program, "host_writes", &code);
    must(code, "kernel");
    must(clSetKernelArg(kernel, 0, sizeof target, &target), "to");
    must(clSetKernelArg(kernel, 1, sizeof origin, &origin), "from");
    must(clSetKernelArg(kernel, 2, sizeof n, &n), "n");
    must(clEnqueueNDRangeKernel(copier->queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL), "run");
    must(clFinish(copier->queue), "finish");
    clReleaseKernel(kernel);
    if (from)
        clReleaseMemObject(origin);
    clReleaseMemObject(target);
}

static void write_part(cl_mem to, size_t offset, size_t bytes, const void *from)
{
    const cl_context context = context_of(to);
    cl_int code = CL_SUCCESS;

    if (!bytes)
        return;
    cl_mem whole = create(context, CL_MEM_READ_WRITE, bytes, NULL, &code);
    must(code, "buffer");
    write_whole(copier_of(context)->queue, whole, bytes, from);
    copy(to, offset, whole, 0, bytes);
    clReleaseMemObject(whole);
}

/* What was asked for before is done first; Oclgrind knows no other order. */
static void wait_for(cl_command_queue queue, cl_uint n, const cl_event *events)
{
    if (n)
        must(clWaitForEvents(n, events), "events");
    must(clFinish(queue), "finish");
}

static cl_int done(cl_command_queue queue, cl_event *event)
{
    return event ? clEnqueueMarkerWithWaitList(queue, 0, NULL, event) : CL_SUCCESS;
}

/* ---- what a program calls ---- */

CL_API_ENTRY cl_mem CL_API_CALL clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes,
                                               void *host, cl_int *status)
{
    const cl_mem_flags access = CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY | CL_MEM_READ_WRITE;
    cl_int code = CL_SUCCESS;
    cl_mem made = create(context, (flags & ~access) | CL_MEM_READ_WRITE, bytes, host, &code);

    if (status)
        *status = code;
    if (code != CL_SUCCESS)
        return made;
    unsigned char *content = calloc(1, bytes);
    must(content ? CL_SUCCESS : -1, "memory");
    if (host) /* memory of the host counts as written */
        memcpy(content, host, bytes);
    write_whole(copier_of(context)->queue, made, bytes, content);
    if (!host)
        copy(made, 0, NULL, 0, bytes);
    free(content);
    return made;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer,
                                                     cl_bool blocking, size_t offset, size_t bytes,
                                                     const void *from, cl_uint n_wait,
                                                     const cl_event *wait, cl_event *event)
{
    (void)blocking;
    wait_for(queue, n_wait, wait);
    write_part(buffer, offset, bytes, from);
    return done(queue, event);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to,
                                                    size_t from_offset, size_t to_offset,
                                                    size_t bytes, cl_uint n_wait,
                                                    const cl_event *wait, cl_event *event)
{
    wait_for(queue, n_wait, wait);
    copy(to, to_offset, from, from_offset, bytes);
    return done(queue, event);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer,
                                                    const void *pattern, size_t pattern_bytes,
                                                    size_t offset, size_t bytes, cl_uint n_wait,
                                                    const cl_event *wait, cl_event *event)
{
    unsigned char *content = malloc(bytes);

    must(content ? CL_SUCCESS : -1, "memory");
    for (size_t i = 0; i < bytes; i++)
        content[i] = ((const unsigned char *)pattern)[i % pattern_bytes];
    wait_for(queue, n_wait, wait);
    write_part(buffer, offset, bytes, content);
    free(content);
    return done(queue, event);
}

CL_API_ENTRY void *CL_API_CALL clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer,
                                                  cl_bool blocking, cl_map_flags flags,
                                                  size_t offset, size_t bytes, cl_uint n_wait,
                                                  const cl_event *wait, cl_event *event,
                                                  cl_int *status)
{
    struct mapping *m = malloc(sizeof *m);
    unsigned char *memory = malloc(bytes);

    (void)blocking;
    must(m && memory ? CL_SUCCESS : -1, "memory");
    wait_for(queue, n_wait, wait);
    must(clEnqueueReadBuffer(queue, buffer, CL_TRUE, offset, bytes, memory, 0, NULL, NULL), "read");
    *m = (struct mapping){buffer, memory, offset, bytes, flags, mappings};
    mappings = m;
    const cl_int code = done(queue, event);
    if (status)
        *status = code;
    return memory;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem buffer,
                                                        void *memory, cl_uint n_wait,
                                                        const cl_event *wait, cl_event *event)
{
    wait_for(queue, n_wait, wait);
    for (struct mapping **at = &mappings; *at; at = &(*at)->next) {
        struct mapping *m = *at;
        if (m->buffer != buffer || m->memory != memory)
            continue;
        if (m->flags != CL_MAP_READ)
            write_part(buffer, m->offset, m->bytes, memory);
        *at = m->next;
        free(m->memory);
        free(m);
        return done(queue, event);
    }
    return CL_INVALID_VALUE;
}
