/* SPDX-License-Identifier: MIT
 * One run of a kernel on buffers of its own, so that a way to compute can be proved before it is used. */
#include "backends/opencl/internal.h"

static cl_int launch(const struct tfm__cl_device *d, const struct tfm__cl_proof *p,
                     cl_kernel kernel, cl_mem *buffers)
{
    const size_t one = 1;
    cl_int code = CL_SUCCESS;

    for (cl_uint i = 0; i < p->n && code == CL_SUCCESS; i++) {
        buffers[i] = clCreateBuffer(d->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                    p->bytes[i], p->host[i], &code);
        if (code == CL_SUCCESS)
            code = clSetKernelArg(kernel, i, sizeof buffers[i], &buffers[i]);
    }
    if (code == CL_SUCCESS)
        code = clSetKernelArg(kernel, p->n, sizeof p->words, &p->words);
    if (code == CL_SUCCESS)
        code = clEnqueueNDRangeKernel(d->queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL);
    for (cl_uint i = 0; i < p->n && code == CL_SUCCESS; i++)
        code = clEnqueueReadBuffer(d->queue, buffers[i], CL_TRUE, 0, p->bytes[i], p->host[i], 0,
                                   NULL, NULL);
    return code;
}

enum tfm_status tfm__cl_proof_run(struct tfm__cl_device *d, const struct tfm__cl_proof *p,
                                  struct tfm_error *err)
{
    cl_mem buffers[TFM__CL_PROOF_BUFFERS] = {NULL};
    cl_program program = NULL;
    cl_int code = CL_SUCCESS;
    const enum tfm_status status = tfm__cl_program_of(d, p->kernel, &program, err);

    if (status != TFM_STATUS_OK)
        return status;
    const cl_kernel kernel = clCreateKernel(program, p->kernel->name, &code);
    if (code != CL_SUCCESS)
        return tfm__cl_fail(d->host, err, "clCreateKernel", code);
    code = launch(d, p, kernel, buffers);
    (void)clReleaseKernel(kernel);
    for (cl_uint i = 0; i < p->n; i++) {
        if (buffers[i])
            (void)clReleaseMemObject(buffers[i]);
    }
    return code == CL_SUCCESS ? TFM_STATUS_OK : tfm__cl_fail(d->host, err, p->what, code);
}
