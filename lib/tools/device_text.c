/* SPDX-License-Identifier: MIT
 * How a device is written. */
#include "lib/tools/device_text.h"

#include <inttypes.h>
#include <stdio.h>

const char *tfm__device_kind(enum tfm_device_kind kind)
{
    static const char *const kinds[] = {[TFM_DEVICE_CPU] = "cpu",
                                        [TFM_DEVICE_GPU] = "gpu",
                                        [TFM_DEVICE_ACCELERATOR] = "accelerator"};
    return kind <= TFM_DEVICE_ACCELERATOR ? kinds[kind] : "?";
}

void tfm__device_spec(const struct tfm_backend_row *row, uint32_t index,
                      char spec[TFM__DEVICE_SPEC])
{
    snprintf(spec, TFM__DEVICE_SPEC, "%s:%" PRIu32, row->name, index);
}
