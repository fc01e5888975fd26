/* SPDX-License-Identifier: MIT
 * The loop of the ops that compute element by element. */
#include "backends/reference/elementwise.h"

struct work {
    enum tfm_dtype dtype;
    const void *a, *b; /* b only for two inputs */
    void *y;
    size_t n;
    const struct tfm_attrs *attrs;
    tfm__reference_map *map;
    tfm__reference_map_two *map_two;
};

static void map_chunks(void *context, size_t begin, size_t end)
{
    const struct work *w = context;

    for (size_t c = begin; c < end; c++) {
        double a[TFM__REFERENCE_CHUNK], b[TFM__REFERENCE_CHUNK];
        const size_t first = c * TFM__REFERENCE_CHUNK;
        const size_t length = tfm__reference_length(w->n, first);
        tfm_dtype_to_f64(w->dtype, w->a, first, length, a);
        if (w->map) {
            w->map(w->attrs, a, length);
        } else {
            tfm_dtype_to_f64(w->dtype, w->b, first, length, b);
            w->map_two(w->attrs, a, b, length);
        }
        tfm_dtype_from_f64(w->dtype, a, w->y, first, length);
    }
}

static void run(const struct tfm__reference_call *call, struct work *w)
{
    const struct tfm_tensor *a = call->node->inputs[0];

    w->dtype = a->dtype;
    w->a = tfm__reference_input(call, 0);
    w->y = tfm__reference_output(call, 0);
    w->n = (size_t)(tfm_tensor_rows(a, call->rows) * tfm_tensor_row_elements(a));
    w->attrs = &call->node->attrs;
    call->host->parallel_for(tfm__reference_chunks(w->n), map_chunks, w);
}

enum tfm_status tfm__reference_each(const struct tfm__reference_call *call, tfm__reference_map *map)
{
    struct work w = {.map = map};

    run(call, &w);
    return TFM_STATUS_OK;
}

enum tfm_status tfm__reference_each_two(const struct tfm__reference_call *call,
                                        tfm__reference_map_two *map)
{
    struct work w = {.map_two = map, .b = tfm__reference_input(call, 1)};

    run(call, &w);
    return TFM_STATUS_OK;
}
