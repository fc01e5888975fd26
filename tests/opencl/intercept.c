/* SPDX-License-Identifier: MIT
 * Preloaded before libOpenCL (LD_PRELOAD) by test_no_allocations: counts every call that creates an
 * OpenCL object, whoever makes it, and passes it on. The real functions are looked up in the library
 * by name: RTLD_NEXT does not see it, because the backend is loaded RTLD_LOCAL. */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_ulong creates;

/* Found with dlsym by the test. */
__attribute__((visibility("default"))) unsigned long test_cl_creates(void)
{
    return atomic_load(&creates);
}

typedef void (*any_function)(void);

static any_function counted(const char *name)
{
    any_function next = NULL;
    void *library = dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_LOCAL); /* open already */
    atomic_fetch_add(&creates, 1);
    if (library)
        *(void **)&next = dlsym(library, name);
    if (!next) {
        fprintf(stderr, "intercept: libOpenCL has no %s\n", name);
        abort();
    }
    return next;
}

/* Defines `name` with these parameters: counts, then calls the real one. */
#define PASS_ON(type, name, parameters, arguments)                        \
    CL_API_ENTRY type CL_API_CALL name parameters                         \
    {                                                                     \
        return ((type(CL_API_CALL *) parameters)counted(#name))arguments; \
    }

typedef void(CL_CALLBACK *context_notify)(const char *, const void *, size_t, void *);
typedef const cl_context_properties *context_list;

PASS_ON(cl_int, clCreateSubDevices,
        (cl_device_id device, const cl_device_partition_property *properties, cl_uint n,
         cl_device_id *devices, cl_uint *count),
        (device, properties, n, devices, count))
PASS_ON(cl_context, clCreateContext,
        (context_list properties, cl_uint n, const cl_device_id *devices, context_notify notify,
         void *data, cl_int *status),
        (properties, n, devices, notify, data, status))
PASS_ON(cl_context, clCreateContextFromType,
        (context_list properties, cl_device_type type, context_notify notify, void *data,
         cl_int *status),
        (properties, type, notify, data, status))
PASS_ON(cl_command_queue, clCreateCommandQueue,
        (cl_context context, cl_device_id device, cl_command_queue_properties properties,
         cl_int *status),
        (context, device, properties, status))
PASS_ON(cl_command_queue, clCreateCommandQueueWithProperties,
        (cl_context context, cl_device_id device, const cl_queue_properties *properties,
         cl_int *status),
        (context, device, properties, status))
PASS_ON(cl_mem, clCreateBuffer,
        (cl_context context, cl_mem_flags flags, size_t size, void *host, cl_int *status),
        (context, flags, size, host, status))
PASS_ON(cl_mem, clCreateBufferWithProperties,
        (cl_context context, const cl_mem_properties *properties, cl_mem_flags flags, size_t size,
         void *host, cl_int *status),
        (context, properties, flags, size, host, status))
PASS_ON(cl_mem, clCreateSubBuffer,
        (cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *info,
         cl_int *status),
        (buffer, flags, type, info, status))
PASS_ON(cl_mem, clCreateImage,
        (cl_context context, cl_mem_flags flags, const cl_image_format *format,
         const cl_image_desc *description, void *host, cl_int *status),
        (context, flags, format, description, host, status))
PASS_ON(cl_mem, clCreateImageWithProperties,
        (cl_context context, const cl_mem_properties *properties, cl_mem_flags flags,
         const cl_image_format *format, const cl_image_desc *description, void *host,
         cl_int *status),
        (context, properties, flags, format, description, host, status))
PASS_ON(cl_mem, clCreatePipe,
        (cl_context context, cl_mem_flags flags, cl_uint packet, cl_uint packets,
         const cl_pipe_properties *properties, cl_int *status),
        (context, flags, packet, packets, properties, status))
PASS_ON(cl_sampler, clCreateSampler,
        (cl_context context, cl_bool normalized, cl_addressing_mode addressing,
         cl_filter_mode filter, cl_int *status),
        (context, normalized, addressing, filter, status))
PASS_ON(cl_sampler, clCreateSamplerWithProperties,
        (cl_context context, const cl_sampler_properties *properties, cl_int *status),
        (context, properties, status))
PASS_ON(cl_program, clCreateProgramWithSource,
        (cl_context context, cl_uint n, const char **texts, const size_t *sizes, cl_int *status),
        (context, n, texts, sizes, status))
PASS_ON(cl_program, clCreateProgramWithBinary,
        (cl_context context, cl_uint n, const cl_device_id *devices, const size_t *sizes,
         const unsigned char **binaries, cl_int *each, cl_int *status),
        (context, n, devices, sizes, binaries, each, status))
PASS_ON(cl_program, clCreateProgramWithBuiltInKernels,
        (cl_context context, cl_uint n, const cl_device_id *devices, const char *names,
         cl_int *status),
        (context, n, devices, names, status))
PASS_ON(cl_program, clCreateProgramWithIL,
        (cl_context context, const void *il, size_t size, cl_int *status),
        (context, il, size, status))
PASS_ON(cl_kernel, clCreateKernel, (cl_program program, const char *name, cl_int *status),
        (program, name, status))
PASS_ON(cl_int, clCreateKernelsInProgram,
        (cl_program program, cl_uint n, cl_kernel *kernels, cl_uint *count),
        (program, n, kernels, count))
PASS_ON(cl_event, clCreateUserEvent, (cl_context context, cl_int *status), (context, status))
