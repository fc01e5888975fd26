/* SPDX-License-Identifier: MIT
 * How a device is written: in lists, and as TFM_BACKEND takes it. */
#ifndef TFM__TOOLS_DEVICE_TEXT_H
#define TFM__TOOLS_DEVICE_TEXT_H

#include <stddef.h>

#include <tfm/device.h>

enum { TFM__DEVICE_SPEC = 48 };

/* "cpu", "gpu", "accelerator". */
const char *tfm__device_kind(enum tfm_device_kind kind);
/* "opencl:0". */
void tfm__device_spec(const struct tfm_backend_row *row, uint32_t index,
                      char spec[TFM__DEVICE_SPEC]);

#endif
