/* SPDX-License-Identifier: MIT
 * The choices that are shipped, in the form of a file of `tfm tune`; docs/performance.md and docs/kernels.md have
 * what was measured. What is not here is found out when a device is opened: activations, persistent kernels and
 * CLBlast's parameters each have a proof. */
#include "backends/opencl/tune.h"

const char *tfm__cl_tune_shipped(const struct tfm__cl_device *d, const char **name)
{
    static const struct {
        const char *name, *lines;
    } cpu = {"PoCL's, for any CPU", "gemm = own\nshape = wide\ngroup = 256\nparts = 4\n"
                                    "attention.split = 256\nattention.few = 64\n"},
      gpu = {"those of a generic GPU", "gemm = clblast\nshape = group\ngroup = 256\nparts = 4\n"
                                       "attention.split = 256\nattention.few = 64\n"};

    *name = d->kind == TFM_DEVICE_CPU ? cpu.name : gpu.name;
    return d->kind == TFM_DEVICE_CPU ? cpu.lines : gpu.lines;
}
