/* SPDX-License-Identifier: MIT
 * How backends and devices are written: in lists, in JSON, and as TFM_BACKEND takes them. */
#ifndef TFM__TOOLS_DEVICE_TEXT_H
#define TFM__TOOLS_DEVICE_TEXT_H

#include <jansson.h>
#include <stddef.h>

#include <tfm/device.h>

enum { TFM__DEVICE_SPEC = 48 };

/* "cpu", "gpu", "accelerator". */
const char *tfm__device_kind(enum tfm_device_kind kind);
/* "opencl:0". */
void tfm__device_spec(const struct tfm_backend_row *row, uint32_t index,
                      char spec[TFM__DEVICE_SPEC]);

/* usable; refused: the file is no backend of this library; shadowed: it is one whose name another has;
 * unusable: it is one and cannot work here */
const char *tfm__backend_state(const struct tfm_backend_row *row);

/* NULL when out of memory. */
json_t *tfm__backend_json(const struct tfm_backend_row *row);
json_t *tfm__device_json(const struct tfm_backend_row *row, uint32_t index);

#endif
