/* SPDX-License-Identifier: MIT
 * cast: y = x in another float dtype; see lib/ops/cast.c. Double holds every value of every float
 * dtype, so the way through it rounds once. */
#include "backends/reference/reference.h"

struct work {
    enum tfm_dtype from, to;
    const void *x;
    void *y;
    size_t n;
};

static void cast_chunks(void *context, size_t begin, size_t end)
{
    const struct work *w = context;

    for (size_t c = begin; c < end; c++) {
        double x[TFM__REFERENCE_CHUNK];
        const size_t first = c * TFM__REFERENCE_CHUNK;
        const size_t length = tfm__reference_length(w->n, first);
        tfm_dtype_to_f64(w->from, w->x, first, length, x);
        tfm_dtype_from_f64(w->to, x, w->y, first, length);
    }
}

enum tfm_status tfm__reference_cast(const struct tfm__reference_call *call)
{
    const struct tfm_tensor *x = call->node->inputs[0];
    struct work w = {
        .from = x->dtype,
        .to = call->node->outputs[0]->dtype,
        .x = tfm__reference_input(call, 0),
        .y = tfm__reference_output(call, 0),
        .n = (size_t)(tfm_tensor_rows(x, call->rows) * tfm_tensor_row_elements(x)),
    };

    call->host->parallel_for(tfm__reference_chunks(w.n), cast_chunks, &w);
    return TFM_STATUS_OK;
}
