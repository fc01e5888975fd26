/* SPDX-License-Identifier: MIT
 * The group shape: how many work-items a group has and what local memory. Nothing is assumed of a
 * device: its own limits, those of the very kernel and its local memory are asked. */
#include "backends/opencl/internal.h"

/* More work-items a group than this bring nothing; kernels/group.cl has room for as many. */
enum { GROUP_MAX = 256 };

static uint32_t power_of_two(size_t most)
{
    uint32_t n = 1;

    while (2 * n <= most && 2 * n <= GROUP_MAX)
        n *= 2;
    return n;
}

enum tfm_status tfm__cl_group_limit(struct tfm__cl_device *d, size_t cap, struct tfm_error *err)
{
    size_t most = 1, items[16] = {1};
    cl_uint dimensions = 0;
    cl_int code = clGetDeviceInfo(d->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof most, &most, NULL);

    if (code == CL_SUCCESS)
        code = clGetDeviceInfo(d->id, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, sizeof dimensions,
                               &dimensions, NULL);
    if (code == CL_SUCCESS && dimensions <= sizeof items / sizeof *items)
        code = clGetDeviceInfo(d->id, CL_DEVICE_MAX_WORK_ITEM_SIZES, dimensions * sizeof *items,
                               items, NULL);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(d->host, err, "clGetDeviceInfo", code);
    most = items[0] < most ? items[0] : most;
    d->settings.group = power_of_two(cap && cap < most ? cap : most);
    return TFM_STATUS_OK;
}

/* Local memory that a kernel wants, beside that of its argument; the driver knows only when it is
 * compiled. */
static enum tfm_status check_local(const struct tfm__cl_device *d, const char *name,
                                   cl_kernel kernel, size_t argument, struct tfm_error *err)
{
    cl_ulong wants = 0, has = 0;
    cl_int code = clGetKernelWorkGroupInfo(kernel, d->id, CL_KERNEL_LOCAL_MEM_SIZE, sizeof wants,
                                           &wants, NULL);

    if (code == CL_SUCCESS)
        code = clGetDeviceInfo(d->id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof has, &has, NULL);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(d->host, err, "clGetKernelWorkGroupInfo", code);
    wants += argument;
    if (wants > has)
        return d->host->error(err, TFM_STATUS_UNSUPPORTED,
                              "opencl: %s wants %llu bytes of local memory, %s has %llu; "
                              "TFM_OPENCL_SHAPE=wide needs none",
                              name, (unsigned long long)wants, d->name, (unsigned long long)has);
    return TFM_STATUS_OK;
}

enum tfm_status tfm__cl_plan_group(struct tfm__cl_planner *planner,
                                   const struct tfm__cl_launch *launch, uint32_t floats,
                                   uint32_t each)
{
    struct tfm__cl_device *d = planner->device;
    struct tfm__cl_launch grouped = *launch;
    cl_program program = NULL;
    cl_int code = CL_SUCCESS;
    size_t most = 0;

    enum tfm_status status = tfm__cl_program_of(d, &launch->kernel, &program, planner->err);
    if (status != TFM_STATUS_OK)
        return status;
    const cl_kernel kernel = clCreateKernel(program, launch->kernel.name, &code);
    if (code != CL_SUCCESS)
        return tfm__cl_fail_kernel(d->host, planner->err, "clCreateKernel", launch->kernel.name,
                                   code);
    code = clGetKernelWorkGroupInfo(kernel, d->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most,
                                    NULL);
    if (code != CL_SUCCESS)
        status = tfm__cl_fail_kernel(d->host, planner->err, "clGetKernelWorkGroupInfo",
                                     launch->kernel.name, code);
    grouped.step.group = power_of_two(most < d->settings.group ? most : d->settings.group);
    grouped.step.local_floats = floats + each * grouped.step.group;
    if (status == TFM_STATUS_OK && grouped.step.group < TFM__CL_GROUP_LEAST)
        status = d->host->error(planner->err, TFM_STATUS_UNSUPPORTED,
                                "opencl: %s takes groups of %zu work-items on %s, %d are needed; "
                                "TFM_OPENCL_SHAPE=wide needs one",
                                launch->kernel.name, most, d->name, TFM__CL_GROUP_LEAST);
    if (status == TFM_STATUS_OK)
        status = check_local(d, launch->kernel.name, kernel,
                             grouped.step.local_floats * sizeof(float), planner->err);
    (void)clReleaseKernel(kernel);
    return status == TFM_STATUS_OK ? tfm__cl_plan_launch(planner, &grouped) : status;
}

enum tfm_status tfm__cl_plan_each(struct tfm__cl_planner *planner,
                                  const struct tfm__cl_launch *launch)
{
    return planner->device->settings.shape == TFM__CL_GROUP
               ? tfm__cl_plan_group(planner, launch, 0, 0)
               : tfm__cl_plan_launch(planner, launch);
}
