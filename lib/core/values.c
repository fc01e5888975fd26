/* SPDX-License-Identifier: MIT
 * The check of indices: what passes here is read by kernels without a look. */
#include "lib/core/values.h"

#include <string.h>

enum tfm_status tfm__values_check(const struct tfm_tensor *tensor, const void *values, int64_t n,
                                  struct tfm_error *err)
{
    const unsigned char *bytes = values;

    if (tensor->dtype != TFM_DTYPE_I32 || !tensor->limit)
        return TFM_STATUS_OK;
    for (int64_t i = 0; i < n; i++) {
        int32_t value;
        memcpy(&value, bytes + (size_t)i * sizeof value, sizeof value);
        if (value >= 0 && value < tensor->limit)
            continue;
        if (value >= 0 && tensor->is_position)
            return tfm_error_set(err, TFM_STATUS_CONTEXT_FULL,
                                 "context full: position %d, the table ends at %lld (\"%s\", value "
                                 "%lld)",
                                 (int)value, (long long)tensor->limit, tensor->name, (long long)i);
        return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE,
                             "\"%s\": value %d at %lld is not in [0, %lld)", tensor->name,
                             (int)value, (long long)i, (long long)tensor->limit);
    }
    return TFM_STATUS_OK;
}
