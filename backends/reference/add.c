/* SPDX-License-Identifier: MIT
 * add: y = a + b; see lib/ops/add.c. y may be a, and b may be a. */
#include "backends/reference/reference.h"

struct work {
    enum tfm_dtype dtype;
    const void *a, *b;
    void *y;
    size_t n;
};

static void add_chunks(void *context, size_t begin, size_t end)
{
    const struct work *w = context;

    for (size_t c = begin; c < end; c++) {
        double a[TFM__REFERENCE_CHUNK], b[TFM__REFERENCE_CHUNK];
        const size_t first = c * TFM__REFERENCE_CHUNK;
        const size_t length = tfm__reference_length(w->n, first);
        tfm_dtype_to_f64(w->dtype, w->a, first, length, a);
        tfm_dtype_to_f64(w->dtype, w->b, first, length, b);
        for (size_t i = 0; i < length; i++)
            a[i] += b[i];
        tfm_dtype_from_f64(w->dtype, a, w->y, first, length);
    }
}

enum tfm_status tfm__reference_add(const struct tfm__reference_call *call)
{
    const struct tfm_tensor *a = call->node->inputs[0];
    struct work w = {
        .dtype = a->dtype,
        .a = tfm__reference_input(call, 0),
        .b = tfm__reference_input(call, 1),
        .y = tfm__reference_output(call, 0),
        .n = (size_t)(tfm_tensor_rows(a, call->rows) * tfm_tensor_row_elements(a)),
    };

    call->host->parallel_for(tfm__reference_chunks(w.n), add_chunks, &w);
    return TFM_STATUS_OK;
}
