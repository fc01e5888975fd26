/* SPDX-License-Identifier: MIT
 * An empty program on an OpenCL device: opens it, builds and runs one trivial kernel, ends. What it holds at
 * most is what the driver costs before a library does anything.
 * empty_device [PART OF THE DEVICE'S OR PLATFORM'S NAME]; without one the first device. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <stdio.h>
#include <string.h>

enum { MOST = 16 };

static cl_device_id find(const char *part)
{
    cl_platform_id platforms[MOST];
    cl_uint n_platforms = 0, n_devices;
    if (clGetPlatformIDs(MOST, platforms, &n_platforms) != CL_SUCCESS)
        return NULL;
    for (cl_uint p = 0; p < n_platforms && p < MOST; p++) {
        cl_device_id devices[MOST];
        char platform[256] = "", name[256];
        if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, MOST, devices, &n_devices) !=
            CL_SUCCESS)
            continue;
        (void)clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof platform, platform, NULL);
        for (cl_uint d = 0; d < n_devices && d < MOST; d++) {
            name[0] = 0;
            (void)clGetDeviceInfo(devices[d], CL_DEVICE_NAME, sizeof name, name, NULL);
            if (strstr(name, part) || strstr(platform, part))
                return devices[d];
        }
    }
    return NULL;
}

static int failed(const char *what, cl_int code)
{
    fprintf(stderr, "empty_device: %s: %d\n", what, (int)code);
    return 1;
}

int main(int argc, char **argv)
{
    const char *source = "__kernel void one(__global int *x) { x[get_global_id(0)] = 1; }";
    const size_t size = 1;
    cl_int code = CL_SUCCESS;
    cl_int result = 0;

    const cl_device_id device = find(argc > 1 ? argv[1] : "");
    if (!device)
        return failed("no such device", 0);
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    if (code != CL_SUCCESS)
        return failed("clCreateContext", code);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
    if (code != CL_SUCCESS)
        return failed("clCreateCommandQueue", code);
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
    if (code != CL_SUCCESS)
        return failed("clCreateProgramWithSource", code);
    code = clBuildProgram(program, 1, &device, "", NULL, NULL);
    if (code != CL_SUCCESS)
        return failed("clBuildProgram", code);
    cl_kernel kernel = clCreateKernel(program, "one", &code);
    if (code != CL_SUCCESS)
        return failed("clCreateKernel", code);
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof result, NULL, &code);
    if (code != CL_SUCCESS)
        return failed("clCreateBuffer", code);
    code = clSetKernelArg(kernel, 0, sizeof memory, &memory);
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL);
    if (code == CL_SUCCESS)
        code =
            clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, sizeof result, &result, 0, NULL, NULL);
    if (code != CL_SUCCESS || result != 1)
        return failed("the kernel", code);
    (void)clReleaseMemObject(memory);
    (void)clReleaseKernel(kernel);
    (void)clReleaseProgram(program);
    (void)clReleaseCommandQueue(queue);
    (void)clReleaseContext(context);
    return 0;
}
