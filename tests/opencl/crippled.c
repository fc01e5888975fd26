/* SPDX-License-Identifier: MIT
 * Preloaded before libOpenCL (LD_PRELOAD) by test_crippled.sh and test_shape.sh: devices whose name holds
 * TFM_TEST_CRIPPLED lose what TFM_TEST_LOST says: "compiler" (they say that they have none), "vectors" (they say
 * that theirs hold one float), "single" (groups of one work-item are refused), "build" (every
 * program fails) or "build TEXT" (those whose source holds the text do, so a device opens and fails when a plan is
 * compiled). The backend sees what such a device would show. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef cl_int(CL_API_CALL *device_info)(cl_device_id, cl_device_info, size_t, void *, size_t *);
typedef cl_int(CL_API_CALL *program_info)(cl_program, cl_program_info, size_t, void *, size_t *);
typedef void(CL_CALLBACK *build_notify)(cl_program, void *);
typedef cl_int(CL_API_CALL *build_program)(cl_program, cl_uint, const cl_device_id *, const char *,
                                           build_notify, void *);

static void *real(const char *name)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_LOCAL); /* open already */
    void *function = library ? dlsym(library, name) : NULL;
    if (!function) {
        fprintf(stderr, "crippled: libOpenCL has no %s\n", name);
        abort();
    }
    return function;
}

static cl_int ask(cl_device_id device, cl_device_info what, size_t size, void *value, size_t *bytes)
{
    union {
        void *object;
        device_info function;
    } to = {real("clGetDeviceInfo")};
    return to.function(device, what, size, value, bytes);
}

/* What follows `what` in TFM_TEST_LOST if the device has lost it: "" or " TEXT". Else NULL. */
static const char *lost_of(cl_device_id device, const char *what)
{
    const char *names = getenv("TFM_TEST_CRIPPLED"), *lost = getenv("TFM_TEST_LOST");
    char name[256] = "";

    return names && lost && strncmp(lost, what, strlen(what)) == 0 &&
                   ask(device, CL_DEVICE_NAME, sizeof name, name, NULL) == CL_SUCCESS &&
                   strstr(name, names)
               ? lost + strlen(what)
               : NULL;
}

static int source_holds(cl_program program, const char *text)
{
    union {
        void *object;
        program_info function;
    } ask_program = {real("clGetProgramInfo")};
    size_t bytes = 0;
    int found = 0;

    if (ask_program.function(program, CL_PROGRAM_SOURCE, 0, NULL, &bytes) != CL_SUCCESS ||
        bytes == 0)
        return 0;
    char *source = malloc(bytes);
    if (source &&
        ask_program.function(program, CL_PROGRAM_SOURCE, bytes, source, NULL) == CL_SUCCESS) {
        source[bytes - 1] = 0;
        found = strstr(source, text) != NULL;
    }
    free(source);
    return found;
}

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceInfo(cl_device_id device, cl_device_info what,
                                                size_t size, void *value, size_t *bytes)
{
    const cl_int code = ask(device, what, size, value, bytes);
    if (code == CL_SUCCESS && what == CL_DEVICE_COMPILER_AVAILABLE && value &&
        lost_of(device, "compiler"))
        *(cl_bool *)value = CL_FALSE;
    if (code == CL_SUCCESS && what == CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT && value &&
        lost_of(device, "vectors"))
        *(cl_uint *)value = 1;
    return code;
}

CL_API_ENTRY cl_int CL_API_CALL clBuildProgram(cl_program program, cl_uint n,
                                               const cl_device_id *devices, const char *options,
                                               build_notify notify, void *data)
{
    union {
        void *object;
        build_program function;
    } to = {real("clBuildProgram")};

    const char *of = n > 0 ? lost_of(devices[0], "build") : NULL;
    if (of && (!of[0] || source_holds(program, of + 1)))
        return CL_BUILD_PROGRAM_FAILURE;
    return to.function(program, n, devices, options, notify, data);
}

typedef cl_int(CL_API_CALL *queue_info)(cl_command_queue, cl_command_queue_info, size_t, void *,
                                        size_t *);
typedef cl_int(CL_API_CALL *enqueue_range)(cl_command_queue, cl_kernel, cl_uint, const size_t *,
                                           const size_t *, const size_t *, cl_uint,
                                           const cl_event *, cl_event *);

CL_API_ENTRY cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
                                                       cl_uint dimensions, const size_t *offset,
                                                       const size_t *global, const size_t *local,
                                                       cl_uint n, const cl_event *wait,
                                                       cl_event *event)
{
    union {
        void *object;
        enqueue_range function;
    } to = {real("clEnqueueNDRangeKernel")};
    union {
        void *object;
        queue_info function;
    } ask_queue = {real("clGetCommandQueueInfo")};
    cl_device_id device = NULL;

    if (dimensions == 1 && local && local[0] == 1 &&
        ask_queue.function(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL) == CL_SUCCESS &&
        lost_of(device, "single"))
        return CL_INVALID_WORK_GROUP_SIZE;
    return to.function(queue, kernel, dimensions, offset, global, local, n, wait, event);
}
