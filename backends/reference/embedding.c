/* SPDX-License-Identifier: MIT
 * embedding: y[n] = table[ids[n]]; see lib/ops/embedding.c. */
#include "backends/reference/reference.h"

struct work {
    enum tfm_dtype from, to;
    const void *table, *ids;
    void *y;
    size_t width;
};

static void gather_rows(void *context, size_t begin, size_t end)
{
    const struct work *w = context;

    for (size_t n = begin; n < end; n++) {
        const size_t row = (size_t)tfm__reference_i32(w->ids, n) * w->width;
        double values[TFM__REFERENCE_CHUNK];
        for (size_t first = 0; first < w->width; first += TFM__REFERENCE_CHUNK) {
            const size_t length = tfm__reference_length(w->width, first);
            tfm_dtype_to_f64(w->from, w->table, row + first, length, values);
            tfm_dtype_from_f64(w->to, values, w->y, n * w->width + first, length);
        }
    }
}

enum tfm_status tfm__reference_embedding(const struct tfm__reference_call *call)
{
    const struct tfm_tensor *table = call->node->inputs[0];
    const struct tfm_tensor *ids = call->node->inputs[1];
    const size_t n = (size_t)(tfm_tensor_rows(ids, call->rows) * tfm_tensor_row_elements(ids));
    struct work w = {
        .from = table->dtype,
        .to = call->node->outputs[0]->dtype,
        .table = tfm__reference_input(call, 0),
        .ids = tfm__reference_input(call, 1),
        .y = tfm__reference_output(call, 0),
        .width = (size_t)table->shape[1],
    };
    const enum tfm_status status = tfm__reference_check_ids(call, 1, n, table->shape[0]);

    if (status == TFM_STATUS_OK)
        call->host->parallel_for(n, gather_rows, &w);
    return status;
}
