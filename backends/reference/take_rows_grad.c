/* SPDX-License-Identifier: MIT
 * take_rows_grad: dx[n] = sum of dy[r] over the r with out[r] = n; see lib/ops/take_rows_grad.c. */
#include "backends/reference/reference.h"

struct work {
    enum tfm_dtype dtype;
    const void *dy;
    void *dx;
    size_t width;
    const struct tfm_rows *rows;
};

static void gather(void *context, size_t begin, size_t end)
{
    const struct work *w = context;
    double sum[TFM__REFERENCE_CHUNK], dy[TFM__REFERENCE_CHUNK];

    for (size_t n = begin; n < end; n++) {
        for (size_t first = 0; first < w->width; first += TFM__REFERENCE_CHUNK) {
            const size_t length = tfm__reference_length(w->width, first);
            for (size_t i = 0; i < length; i++)
                sum[i] = 0;
            for (uint32_t r = 0; r < w->rows->n_out; r++) {
                if ((size_t)w->rows->out[r] != n)
                    continue;
                tfm_dtype_to_f64(w->dtype, w->dy, r * w->width + first, length, dy);
                for (size_t i = 0; i < length; i++)
                    sum[i] += dy[i];
            }
            tfm_dtype_from_f64(w->dtype, sum, w->dx, n * w->width + first, length);
        }
    }
}

enum tfm_status tfm__reference_take_rows_grad(const struct tfm__reference_call *call)
{
    const struct tfm_tensor *dy = call->node->inputs[0];
    struct work w = {
        .dtype = dy->dtype,
        .dy = tfm__reference_input(call, 0),
        .dx = tfm__reference_output(call, 0),
        .width = (size_t)tfm_tensor_row_elements(dy),
        .rows = call->rows,
    };

    call->host->parallel_for(call->rows->n, gather, &w);
    return TFM_STATUS_OK;
}
