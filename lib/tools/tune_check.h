/* SPDX-License-Identifier: MIT
 * The result of a linear layer on a device, to compare ways of computing it. */
#ifndef TFM__TOOLS_TUNE_CHECK_H
#define TFM__TOOLS_TUNE_CHECK_H

#include <tfm/device.h>

/* y [rows, out] = x [rows, in] W^T of a device; x and the weight hold the same values each time. */
enum tfm_status tfm__tune_compute(struct tfm_device *device, enum tfm_dtype weight, int64_t in,
                                  int64_t out, uint32_t rows, float *y, struct tfm_error *err);

/* 1 if `have` is `want` [n] but for rounding, of activations to 8 bits too: what is wrong is far off. */
int tfm__tune_agree(const float *have, const float *want, size_t n);

#endif
