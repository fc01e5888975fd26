/* SPDX-License-Identifier: MIT
 * Preloaded before libOpenCL (LD_PRELOAD) by test_crippled.sh and test_shape.sh: devices whose name holds
 * TFM_TEST_CRIPPLED lose what TFM_TEST_LOST says: "compiler" (they say that they have none), "build" (every
 * program fails) or "vectors" (they say that theirs hold one float). The backend sees what such a device would
 * show. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef cl_int(CL_API_CALL *device_info)(cl_device_id, cl_device_info, size_t, void *, size_t *);
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

static int has_lost(cl_device_id device, const char *what)
{
    const char *names = getenv("TFM_TEST_CRIPPLED"), *lost = getenv("TFM_TEST_LOST");
    char name[256] = "";

    return names && lost && strcmp(lost, what) == 0 &&
           ask(device, CL_DEVICE_NAME, sizeof name, name, NULL) == CL_SUCCESS &&
           strstr(name, names);
}

CL_API_ENTRY cl_int CL_API_CALL clGetDeviceInfo(cl_device_id device, cl_device_info what,
                                                size_t size, void *value, size_t *bytes)
{
    const cl_int code = ask(device, what, size, value, bytes);
    if (code == CL_SUCCESS && what == CL_DEVICE_COMPILER_AVAILABLE && value &&
        has_lost(device, "compiler"))
        *(cl_bool *)value = CL_FALSE;
    if (code == CL_SUCCESS && what == CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT && value &&
        has_lost(device, "vectors"))
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

    if (n > 0 && has_lost(devices[0], "build"))
        return CL_BUILD_PROGRAM_FAILURE;
    return to.function(program, n, devices, options, notify, data);
}
