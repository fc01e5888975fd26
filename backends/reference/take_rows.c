/* SPDX-License-Identifier: MIT
 * take_rows: y[r] = x[rows.out[r]], bit for bit; see lib/ops/take_rows.c. */
#include <string.h>

#include "backends/reference/reference.h"

enum tfm_status tfm__reference_take_rows(const struct tfm__reference_call *call)
{
    const struct tfm_tensor *x = call->node->inputs[0];
    const struct tfm_dtype_info *info = tfm_dtype_info(x->dtype);
    const size_t bytes = (size_t)tfm_tensor_row_elements(x) / info->block * info->bytes;
    const unsigned char *src = tfm__reference_input(call, 0);
    unsigned char *dst = tfm__reference_output(call, 0);

    for (uint32_t r = 0; r < call->rows->n_out; r++) {
        const int32_t row = call->rows->out[r];
        if (row < 0 || (uint32_t)row >= call->rows->n)
            return call->host->error(call->err, TFM_STATUS_OUT_OF_RANGE,
                                     "take_rows: row %d asked for in out[%u], but '%s' has %u rows",
                                     row, r, x->name, call->rows->n);
        memcpy(dst + r * bytes, src + (uint32_t)row * bytes, bytes);
    }
    return TFM_STATUS_OK;
}
