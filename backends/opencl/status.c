/* SPDX-License-Identifier: MIT
 * OpenCL's error codes: their names, and the status that each becomes. */
#include "backends/opencl/internal.h"

struct code {
    cl_int code;
    const char *name;
    enum tfm_status status;
};

#define CODE(name, status)               \
    {                                    \
        name, #name, TFM_STATUS_##status \
    }

static const struct code codes[] = {
    CODE(CL_DEVICE_NOT_FOUND, NOT_FOUND),
    CODE(CL_DEVICE_NOT_AVAILABLE, DEVICE_LOST),
    CODE(CL_COMPILER_NOT_AVAILABLE, BUILD),
    CODE(CL_MEM_OBJECT_ALLOCATION_FAILURE, NOMEM),
    CODE(CL_OUT_OF_RESOURCES, BACKEND),
    CODE(CL_OUT_OF_HOST_MEMORY, NOMEM),
    CODE(CL_PROFILING_INFO_NOT_AVAILABLE, BACKEND),
    CODE(CL_MEM_COPY_OVERLAP, INVALID_ARGUMENT),
    CODE(CL_BUILD_PROGRAM_FAILURE, BUILD),
    CODE(CL_MAP_FAILURE, BACKEND),
    CODE(CL_MISALIGNED_SUB_BUFFER_OFFSET, INTERNAL),
    CODE(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, BACKEND),
    CODE(CL_COMPILE_PROGRAM_FAILURE, BUILD),
    CODE(CL_LINKER_NOT_AVAILABLE, BUILD),
    CODE(CL_LINK_PROGRAM_FAILURE, BUILD),
    CODE(CL_DEVICE_PARTITION_FAILED, BACKEND),
    CODE(CL_KERNEL_ARG_INFO_NOT_AVAILABLE, BACKEND),
    CODE(CL_INVALID_VALUE, INTERNAL),
    CODE(CL_INVALID_DEVICE_TYPE, INTERNAL),
    CODE(CL_INVALID_PLATFORM, INTERNAL),
    CODE(CL_INVALID_DEVICE, INTERNAL),
    CODE(CL_INVALID_CONTEXT, INTERNAL),
    CODE(CL_INVALID_QUEUE_PROPERTIES, INTERNAL),
    CODE(CL_INVALID_COMMAND_QUEUE, INTERNAL),
    CODE(CL_INVALID_HOST_PTR, INTERNAL),
    CODE(CL_INVALID_MEM_OBJECT, INTERNAL),
    CODE(CL_INVALID_BINARY, BUILD),
    CODE(CL_INVALID_BUILD_OPTIONS, BUILD),
    CODE(CL_INVALID_PROGRAM, INTERNAL),
    CODE(CL_INVALID_PROGRAM_EXECUTABLE, BUILD),
    CODE(CL_INVALID_KERNEL_NAME, BUILD),
    CODE(CL_INVALID_KERNEL_DEFINITION, BUILD),
    CODE(CL_INVALID_KERNEL, INTERNAL),
    CODE(CL_INVALID_ARG_INDEX, INTERNAL),
    CODE(CL_INVALID_ARG_VALUE, INTERNAL),
    CODE(CL_INVALID_ARG_SIZE, INTERNAL),
    CODE(CL_INVALID_KERNEL_ARGS, INTERNAL),
    CODE(CL_INVALID_WORK_DIMENSION, INTERNAL),
    CODE(CL_INVALID_WORK_GROUP_SIZE, BACKEND),
    CODE(CL_INVALID_WORK_ITEM_SIZE, BACKEND),
    CODE(CL_INVALID_GLOBAL_OFFSET, INTERNAL),
    CODE(CL_INVALID_EVENT_WAIT_LIST, INTERNAL),
    CODE(CL_INVALID_EVENT, INTERNAL),
    CODE(CL_INVALID_OPERATION, BACKEND),
    CODE(CL_INVALID_BUFFER_SIZE, NOMEM),
    CODE(CL_INVALID_GLOBAL_WORK_SIZE, INTERNAL),
    CODE(CL_INVALID_PROPERTY, INTERNAL),
    CODE(CL_INVALID_DEVICE_PARTITION_COUNT, BACKEND),
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR", TFM_STATUS_NOT_FOUND},
};

static const struct code *find(cl_int code)
{
    static const struct code unknown = {0, "unknown code", TFM_STATUS_BACKEND};

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (codes[i].code == code)
            return &codes[i];
    }
    return &unknown;
}

const char *tfm__cl_code_name(cl_int code)
{
    return find(code)->name;
}

enum tfm_status tfm__cl_fail(const struct tfm_host *host, struct tfm_error *err, const char *call,
                             cl_int code)
{
    const struct code *c = find(code);
    return host->error(err, c->status, "opencl: %s: %s (%d)", call, c->name, (int)code);
}

enum tfm_status tfm__cl_fail_kernel(const struct tfm_host *host, struct tfm_error *err,
                                    const char *call, const char *kernel, cl_int code)
{
    const struct code *c = find(code);
    return host->error(err, c->status, "opencl: %s of %s: %s (%d)", call, kernel, c->name,
                       (int)code);
}
