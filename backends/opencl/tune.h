/* SPDX-License-Identifier: MIT
 * What a file of `tfm tune` chose for a device, and what there is to choose from. */
#ifndef TFM_OPENCL_TUNE_H
#define TFM_OPENCL_TUNE_H

#include <tfm/tune.h>

#include "backends/opencl/internal.h"

/* Reads the device's file, whose facts are known; one that is of another device, another driver or broken is
 * ignored with one line. Fills device->tuned. */
enum tfm_status tfm__cl_tune_open(struct tfm__cl_device *device, struct tfm_error *err);
void tfm__cl_tune_close(struct tfm__cl_device *device);

/* The extension TFM_TUNE of a device. */
const struct tfm_tune *tfm__cl_tune(const struct tfm__cl_device *device);

/* Names of CLBlast's Xgemm parameters, [TFM__CL_GEMM_PARAMETERS] (gemm.c). */
extern const char *const tfm__cl_gemm_names[];

#endif
