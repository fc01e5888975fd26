/* SPDX-License-Identifier: MIT
 * embedding_grad: dtable[ids[n]] += dy[n]; see lib/ops/embedding_grad.c. Threads share the columns, so that
 * repeated ids add up in the order of the rows. */
#include "backends/reference/reference.h"

struct work {
    enum tfm_dtype dtype;
    const void *ids, *dy;
    void *dtable;
    size_t n, width;
};

/* Is ids[n] among those before it? */
static int seen(const struct work *w, size_t n)
{
    const int32_t id = tfm__reference_i32(w->ids, n);
    size_t m = 0;

    while (m < n && tfm__reference_i32(w->ids, m) != id)
        m++;
    return m < n;
}

/* Columns [first, first + length) of the row that ids[n] names, for all the rows that name it. */
static void add_row(const struct work *w, size_t n, size_t first, size_t length)
{
    const int32_t id = tfm__reference_i32(w->ids, n);
    const size_t row = (size_t)id * w->width + first;
    double dy[TFM__REFERENCE_CHUNK], sum[TFM__REFERENCE_CHUNK];

    tfm_dtype_to_f64(w->dtype, w->dtable, row, length, sum);
    for (size_t m = n; m < w->n; m++) {
        if (tfm__reference_i32(w->ids, m) != id)
            continue;
        tfm_dtype_to_f64(w->dtype, w->dy, m * w->width + first, length, dy);
        for (size_t i = 0; i < length; i++)
            sum[i] += dy[i];
    }
    tfm_dtype_from_f64(w->dtype, sum, w->dtable, row, length);
}

static void add_columns(void *context, size_t begin, size_t end)
{
    const struct work *w = context;

    for (size_t n = 0; n < w->n; n++) {
        for (size_t first = begin; first < end && !seen(w, n); first += TFM__REFERENCE_CHUNK)
            add_row(w, n, first, tfm__reference_length(end, first));
    }
}

enum tfm_status tfm__reference_embedding_grad(const struct tfm__reference_call *call)
{
    const struct tfm_tensor *ids = call->node->inputs[0], *dtable = call->node->inputs[2];
    struct work w = {
        .dtype = dtable->dtype,
        .ids = tfm__reference_input(call, 0),
        .dy = tfm__reference_input(call, 1),
        .dtable = tfm__reference_state(call, 2),
        .n = (size_t)(tfm_tensor_rows(ids, call->rows) * tfm_tensor_row_elements(ids)),
        .width = (size_t)dtable->shape[1],
    };
    const enum tfm_status status = tfm__reference_check_ids(call, 0, w.n, dtable->shape[0]);

    if (status == TFM_STATUS_OK && w.n > 0)
        call->host->parallel_for(w.width, add_columns, &w);
    return status;
}
