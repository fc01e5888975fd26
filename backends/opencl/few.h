/* SPDX-License-Identifier: MIT
 * What runs of few rows need of an exec, and the proof that a persistent kernel works on a device. */
#ifndef TFM_OPENCL_FEW_H
#define TFM_OPENCL_FEW_H

#include "backends/opencl/internal.h"

struct tfm__cl_few {
    cl_kernel kernel;
    cl_mem steps, nothing, control; /* nothing: one step that only ends a phase */
    int32_t *staging;               /* what goes to `control` */
    size_t bytes;
    uint32_t wait, penalty; /* runs to go before the next try; the last wait */
};

enum tfm_status tfm__cl_few_upload(const struct tfm__cl_exec *exec, struct tfm_error *err);

/* Steps [first, n) of a table in one launch of `groups` parts, which wait as if they were `parts`; *left = the
 * step that they came to. BACKEND: they left at different ones. */
enum tfm_status tfm__cl_few_persist(const struct tfm__cl_exec *exec, cl_mem steps, uint32_t first,
                                    uint32_t n, uint32_t parts, uint32_t groups, uint32_t polls,
                                    uint32_t *left, struct tfm_error *err);

/* Sets few_parts, few_polls and, if barriers are fast here, few_proven of the device. The caller holds the
 * lock of persistent kernels. */
enum tfm_status tfm__cl_few_prove(struct tfm__cl_exec *exec, struct tfm_error *err);

#endif
