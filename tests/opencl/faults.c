/* SPDX-License-Identifier: MIT
 * The fault layer, preloaded into a test. It stands between the process and libOpenCL under the same
 * names; the library itself is opened beside it. A call that fails is not passed on, except where the
 * caller could not go on in safety (waits) or the object would be lost (releases): those are done, and
 * the failure is reported all the same. */
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include "tests/opencl/faults.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fault armed;
static unsigned long n_calls;
static const char *struck_name;
static int is_lost;
static atomic_long live[FAULT_KINDS];

/* ---- deciding ---- */

/* A question that a dead device still answers, or a call that gives something back. */
static int survives(const char *name)
{
    return strncmp(name, "clGet", 5) == 0 || strncmp(name, "clRelease", 9) == 0 ||
           strcmp(name, "clCreateContext") == 0 || strcmp(name, "clCreateSubDevices") == 0;
}

/* CL_SUCCESS, or the code with which this call has to fail. */
static cl_int strike(const char *name)
{
    cl_int code = CL_SUCCESS;

    pthread_mutex_lock(&lock);
    n_calls++;
    if (is_lost && strcmp(name, "clCreateContext") == 0)
        is_lost = armed.at = 0; /* a new context lives */
    if ((armed.at && n_calls == armed.at) || (armed.call && strcmp(armed.call, name) == 0) ||
        (is_lost && !survives(name))) {
        code = armed.code;
        is_lost |= armed.lasting;
        if (!struck_name)
            struck_name = name;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static void count(enum fault_kind kind, long by)
{
    atomic_fetch_add(&live[kind], by);
}

typedef void (*any_function)(void);

static any_function real(const char *name)
{
    any_function next = NULL;
    void *library = dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_LOCAL); /* open already */
    if (library)
        *(void **)&next = dlsym(library, name);
    if (!next) {
        fprintf(stderr, "faults: libOpenCL has no %s\n", name);
        abort();
    }
    return next;
}

#define REAL(type, name, parameters) ((type(CL_API_CALL *) parameters)real(#name))

/* ---- calls that return a code ---- */

/* A call that fails is not made. */
#define CALL(name, parameters, arguments)                                \
    CL_API_ENTRY cl_int CL_API_CALL name parameters                      \
    {                                                                    \
        const cl_int fault = strike(#name);                              \
        return fault ? fault : REAL(cl_int, name, parameters) arguments; \
    }

/* A wait: made also when it fails. */
#define WAIT(name, parameters, arguments)                             \
    CL_API_ENTRY cl_int CL_API_CALL name parameters                   \
    {                                                                 \
        const cl_int fault = strike(#name);                           \
        const cl_int code = REAL(cl_int, name, parameters) arguments; \
        return fault ? fault : code;                                  \
    }

#define RETAIN(name, type, kind)                                                \
    CL_API_ENTRY cl_int CL_API_CALL name(type object)                           \
    {                                                                           \
        const cl_int fault = strike(#name);                                     \
        const cl_int code = fault ? fault : REAL(cl_int, name, (type))(object); \
        count(kind, code == CL_SUCCESS);                                        \
        return code;                                                            \
    }

#define RELEASE(name, type, kind)                               \
    CL_API_ENTRY cl_int CL_API_CALL name(type object)           \
    {                                                           \
        const cl_int fault = strike(#name);                     \
        const cl_int code = REAL(cl_int, name, (type))(object); \
        count(kind, -(code == CL_SUCCESS));                     \
        return fault ? fault : code;                            \
    }

/* The last parameter is `cl_event *event`: an event that is asked for is an object. */
#define ENQUEUE(name, parameters, arguments)                          \
    CL_API_ENTRY cl_int CL_API_CALL name parameters                   \
    {                                                                 \
        const cl_int fault = strike(#name);                           \
        if (fault)                                                    \
            return fault;                                             \
        const cl_int code = REAL(cl_int, name, parameters) arguments; \
        count(FAULT_EVENT, code == CL_SUCCESS && event);              \
        return code;                                                  \
    }

/* ---- calls that return an object; the parameter `status` is its code ---- */

#define CREATE(type, kind, name, parameters, arguments)           \
    CL_API_ENTRY type CL_API_CALL name parameters                 \
    {                                                             \
        const cl_int fault = strike(#name);                       \
        if (fault) {                                              \
            if (status)                                           \
                *status = fault;                                  \
            return NULL;                                          \
        }                                                         \
        const type made = REAL(type, name, parameters) arguments; \
        count(kind, made != NULL);                                \
        return made;                                              \
    }

typedef void(CL_CALLBACK *context_notify)(const char *, const void *, size_t, void *);
typedef void(CL_CALLBACK *program_notify)(cl_program, void *);
typedef void(CL_CALLBACK *memory_notify)(cl_mem, void *);
typedef const cl_context_properties *context_list;

/* platforms and devices */
CALL(clGetPlatformIDs, (cl_uint n, cl_platform_id *platforms, cl_uint *found),
     (n, platforms, found))
CALL(clGetPlatformInfo,
     (cl_platform_id platform, cl_platform_info what, size_t size, void *value, size_t *needed),
     (platform, what, size, value, needed))
CALL(clGetDeviceIDs,
     (cl_platform_id platform, cl_device_type type, cl_uint n, cl_device_id *devices,
      cl_uint *found),
     (platform, type, n, devices, found))

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceInfo(cl_device_id device, cl_device_info what,
                                                size_t size, void *value, size_t *needed)
{
    const cl_int fault = strike("clGetDeviceInfo");
    if (fault)
        return fault;
    const cl_int code =
        REAL(cl_int, clGetDeviceInfo, (cl_device_id, cl_device_info, size_t, void *, size_t *))(
            device, what, size, value, needed);
    pthread_mutex_lock(&lock);
    if (code == CL_SUCCESS && armed.info == what && what != 0 && value && size >= sizeof(cl_uint) &&
        size <= sizeof armed.value)
        memcpy(value, &armed.value, size); /* little-endian: the low bytes are the smaller type */
    pthread_mutex_unlock(&lock);
    return code;
}

/* It has no code to fail with: NULL says that there is no such function. */
CL_API_ENTRY void *CL_API_CALL clGetExtensionFunctionAddress(const char *name)
{
    if (strike("clGetExtensionFunctionAddress"))
        return NULL;
    return REAL(void *, clGetExtensionFunctionAddress, (const char *))(name);
}

CL_API_ENTRY cl_int CL_API_CALL clCreateSubDevices(cl_device_id device,
                                                   const cl_device_partition_property *properties,
                                                   cl_uint n, cl_device_id *devices, cl_uint *found)
{
    const cl_int fault = strike("clCreateSubDevices");
    cl_uint made = 0;
    if (fault)
        return fault;
    const cl_int code = REAL(cl_int, clCreateSubDevices,
                             (cl_device_id, const cl_device_partition_property *, cl_uint,
                              cl_device_id *, cl_uint *))(device, properties, n, devices, &made);
    if (found)
        *found = made;
    count(FAULT_DEVICE, code == CL_SUCCESS && devices ? (long)made : 0);
    return code;
}

RETAIN(clRetainDevice, cl_device_id, FAULT_DEVICE)
RELEASE(clReleaseDevice, cl_device_id, FAULT_DEVICE)

/* contexts and queues */
CREATE(cl_context, FAULT_CONTEXT, clCreateContext,
       (context_list properties, cl_uint n, const cl_device_id *devices, context_notify notify,
        void *data, cl_int *status),
       (properties, n, devices, notify, data, status))
CREATE(cl_context, FAULT_CONTEXT, clCreateContextFromType,
       (context_list properties, cl_device_type type, context_notify notify, void *data,
        cl_int *status),
       (properties, type, notify, data, status))
RETAIN(clRetainContext, cl_context, FAULT_CONTEXT)
RELEASE(clReleaseContext, cl_context, FAULT_CONTEXT)
CALL(clGetContextInfo,
     (cl_context context, cl_context_info what, size_t size, void *value, size_t *needed),
     (context, what, size, value, needed))
CREATE(cl_command_queue, FAULT_QUEUE, clCreateCommandQueue,
       (cl_context context, cl_device_id device, cl_command_queue_properties properties,
        cl_int *status),
       (context, device, properties, status))
RETAIN(clRetainCommandQueue, cl_command_queue, FAULT_QUEUE)
RELEASE(clReleaseCommandQueue, cl_command_queue, FAULT_QUEUE)
CALL(clGetCommandQueueInfo,
     (cl_command_queue queue, cl_command_queue_info what, size_t size, void *value, size_t *needed),
     (queue, what, size, value, needed))
CALL(clFlush, (cl_command_queue queue), (queue))
WAIT(clFinish, (cl_command_queue queue), (queue))

/* memory */
CREATE(cl_mem, FAULT_MEMORY, clCreateBuffer,
       (cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *status),
       (context, flags, size, host, status))
CREATE(cl_mem, FAULT_MEMORY, clCreateSubBuffer,
       (cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *info,
        cl_int *status),
       (buffer, flags, type, info, status))
RETAIN(clRetainMemObject, cl_mem, FAULT_MEMORY)
RELEASE(clReleaseMemObject, cl_mem, FAULT_MEMORY)
CALL(clSetMemObjectDestructorCallback, (cl_mem memory, memory_notify notify, void *data),
     (memory, notify, data))
CALL(clGetMemObjectInfo,
     (cl_mem memory, cl_mem_info what, size_t size, void *value, size_t *needed),
     (memory, what, size, value, needed))
ENQUEUE(clEnqueueReadBuffer,
        (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
         void *to, cl_uint n, const cl_event *after, cl_event *event),
        (queue, buffer, blocking, offset, size, to, n, after, event))
ENQUEUE(clEnqueueWriteBuffer,
        (cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
         const void *from, cl_uint n, const cl_event *after, cl_event *event),
        (queue, buffer, blocking, offset, size, from, n, after, event))
ENQUEUE(clEnqueueCopyBuffer,
        (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
         size_t size, cl_uint n, const cl_event *after, cl_event *event),
        (queue, from, to, from_offset, to_offset, size, n, after, event))
ENQUEUE(clEnqueueNativeKernel,
        (cl_command_queue queue, void(CL_CALLBACK *body)(void *), void *arguments, size_t size,
         cl_uint n_memories, const cl_mem *memories, const void **places, cl_uint n,
         const cl_event *after, cl_event *event),
        (queue, body, arguments, size, n_memories, memories, places, n, after, event))
ENQUEUE(clEnqueueFillBuffer,
        (cl_command_queue queue, cl_mem buffer, const void *pattern, size_t pattern_size,
         size_t offset, size_t size, cl_uint n, const cl_event *after, cl_event *event),
        (queue, buffer, pattern, pattern_size, offset, size, n, after, event))
ENQUEUE(clEnqueueUnmapMemObject,
        (cl_command_queue queue, cl_mem memory, void *mapped, cl_uint n, const cl_event *after,
         cl_event *event),
        (queue, memory, mapped, n, after, event))

CL_API_ENTRY void *CL_API_CALL clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer,
                                                  cl_bool blocking, cl_map_flags flags,
                                                  size_t offset, size_t size, cl_uint n,
                                                  const cl_event *after, cl_event *event,
                                                  cl_int *status)
{
    const cl_int fault = strike("clEnqueueMapBuffer");
    if (fault) {
        if (status)
            *status = fault;
        return NULL;
    }
    void *mapped = REAL(void *, clEnqueueMapBuffer,
                        (cl_command_queue, cl_mem, cl_bool, cl_map_flags, size_t, size_t, cl_uint,
                         const cl_event *, cl_event *, cl_int *))(
        queue, buffer, blocking, flags, offset, size, n, after, event, status);
    count(FAULT_EVENT, mapped && event);
    return mapped;
}

/* programs and kernels */
CREATE(cl_program, FAULT_PROGRAM, clCreateProgramWithSource,
       (cl_context context, cl_uint n, const char **texts, const size_t *sizes, cl_int *status),
       (context, n, texts, sizes, status))
CREATE(cl_program, FAULT_PROGRAM, clCreateProgramWithBinary,
       (cl_context context, cl_uint n, const cl_device_id *devices, const size_t *sizes,
        const unsigned char **binaries, cl_int *each, cl_int *status),
       (context, n, devices, sizes, binaries, each, status))
RETAIN(clRetainProgram, cl_program, FAULT_PROGRAM)
RELEASE(clReleaseProgram, cl_program, FAULT_PROGRAM)
CALL(clBuildProgram,
     (cl_program program, cl_uint n, const cl_device_id *devices, const char *options,
      program_notify notify, void *data),
     (program, n, devices, options, notify, data))
CALL(clGetProgramInfo,
     (cl_program program, cl_program_info what, size_t size, void *value, size_t *needed),
     (program, what, size, value, needed))
CALL(clGetProgramBuildInfo,
     (cl_program program, cl_device_id device, cl_program_build_info what, size_t size, void *value,
      size_t *needed),
     (program, device, what, size, value, needed))
CREATE(cl_kernel, FAULT_KERNEL, clCreateKernel,
       (cl_program program, const char *name, cl_int *status), (program, name, status))
RETAIN(clRetainKernel, cl_kernel, FAULT_KERNEL)
RELEASE(clReleaseKernel, cl_kernel, FAULT_KERNEL)
CALL(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t size, const void *value),
     (kernel, index, size, value))
CALL(clGetKernelInfo,
     (cl_kernel kernel, cl_kernel_info what, size_t size, void *value, size_t *needed),
     (kernel, what, size, value, needed))
CALL(clGetKernelWorkGroupInfo,
     (cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what, size_t size,
      void *value, size_t *needed),
     (kernel, device, what, size, value, needed))
ENQUEUE(clEnqueueNDRangeKernel,
        (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,
         const size_t *global, const size_t *local, cl_uint n, const cl_event *after,
         cl_event *event),
        (queue, kernel, dimensions, offset, global, local, n, after, event))

/* events */
WAIT(clWaitForEvents, (cl_uint n, const cl_event *events), (n, events))
CALL(clGetEventInfo, (cl_event event, cl_event_info what, size_t size, void *value, size_t *needed),
     (event, what, size, value, needed))
CALL(clGetEventProfilingInfo,
     (cl_event event, cl_profiling_info what, size_t size, void *value, size_t *needed),
     (event, what, size, value, needed))
RETAIN(clRetainEvent, cl_event, FAULT_EVENT)
RELEASE(clReleaseEvent, cl_event, FAULT_EVENT)

/* ---- for the test ---- */

static void layer_arm(const struct fault *fault)
{
    static const struct fault none;

    pthread_mutex_lock(&lock);
    armed = fault ? *fault : none;
    n_calls = 0;
    struck_name = NULL;
    is_lost = 0;
    pthread_mutex_unlock(&lock);
}

static unsigned long layer_calls(void)
{
    pthread_mutex_lock(&lock);
    const unsigned long n = n_calls;
    pthread_mutex_unlock(&lock);
    return n;
}

static const char *layer_struck(void)
{
    pthread_mutex_lock(&lock);
    const char *name = struck_name;
    pthread_mutex_unlock(&lock);
    return name;
}

static long layer_live(enum fault_kind kind)
{
    return atomic_load(&live[kind]);
}

static int layer_covers(const char *name)
{
    Dl_info here, there;
    const void *found = dlsym(RTLD_DEFAULT, name);
    return found && dladdr(found, &there) && dladdr(&fault_layer, &here) &&
           there.dli_fbase == here.dli_fbase;
}

__attribute__((visibility("default"))) const struct fault_layer fault_layer = {
    layer_arm, layer_calls, layer_struck, layer_live, layer_covers,
};
