/* SPDX-License-Identifier: MIT
 * rope: rotary position embedding; see lib/ops/rope.c. y may be x: a pair is read before it is
 * written, and nothing else reads it. */
#include <string.h>

#include "backends/reference/reference.h"

enum { PAIRS = TFM__REFERENCE_CHUNK / 2 }; /* that are converted at a time */

struct work {
    enum tfm_dtype dtype, table_dtype;
    const void *x, *pos, *table;
    void *y;
    size_t heads, head_dim, pairs; /* H, d, r/2 */
    int halves;
};

/* Pairs first..first+n of the head that begins at element `head`, side by side: 2i, 2i+1. */
static void load_pairs(const struct work *w, size_t head, size_t first, size_t n, double *pair)
{
    double a[PAIRS], b[PAIRS];

    if (!w->halves) {
        tfm_dtype_to_f64(w->dtype, w->x, head + 2 * first, 2 * n, pair);
        return;
    }
    tfm_dtype_to_f64(w->dtype, w->x, head + first, n, a);
    tfm_dtype_to_f64(w->dtype, w->x, head + w->pairs + first, n, b);
    for (size_t i = 0; i < n; i++) {
        pair[2 * i] = a[i];
        pair[2 * i + 1] = b[i];
    }
}

static void store_pairs(const struct work *w, size_t head, size_t first, size_t n,
                        const double *pair)
{
    double a[PAIRS], b[PAIRS];

    if (!w->halves) {
        tfm_dtype_from_f64(w->dtype, pair, w->y, head + 2 * first, 2 * n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        a[i] = pair[2 * i];
        b[i] = pair[2 * i + 1];
    }
    tfm_dtype_from_f64(w->dtype, a, w->y, head + first, n);
    tfm_dtype_from_f64(w->dtype, b, w->y, head + w->pairs + first, n);
}

static void rotate_row(const struct work *w, size_t row)
{
    const size_t angles = (size_t)tfm__reference_i32(w->pos, row) * w->pairs * 2;
    const size_t bytes = tfm_dtype_info(w->dtype)->bytes;
    double pair[2 * PAIRS], cs[2 * PAIRS];

    for (size_t h = 0; h < w->heads; h++) {
        const size_t head = (row * w->heads + h) * w->head_dim;
        for (size_t first = 0; first < w->pairs; first += PAIRS) {
            const size_t n = w->pairs - first < PAIRS ? w->pairs - first : PAIRS;
            tfm_dtype_to_f64(w->table_dtype, w->table, angles + 2 * first, 2 * n, cs);
            load_pairs(w, head, first, n, pair);
            for (size_t i = 0; i < 2 * n; i += 2) {
                const double a = pair[i], b = pair[i + 1];
                pair[i] = a * cs[i] - b * cs[i + 1];
                pair[i + 1] = a * cs[i + 1] + b * cs[i];
            }
            store_pairs(w, head, first, n, pair);
        }
        const size_t rest = head + 2 * w->pairs;
        if (w->y != w->x && 2 * w->pairs < w->head_dim)
            memcpy((unsigned char *)w->y + rest * bytes, (const unsigned char *)w->x + rest * bytes,
                   (w->head_dim - 2 * w->pairs) * bytes);
    }
}

static void rotate_rows(void *context, size_t begin, size_t end)
{
    for (size_t row = begin; row < end; row++)
        rotate_row(context, row);
}

enum tfm_status tfm__reference_rope(const struct tfm__reference_call *call)
{
    const struct tfm_tensor *x = call->node->inputs[0], *table = call->node->inputs[2];
    const size_t n = (size_t)tfm_tensor_rows(x, call->rows);
    struct work w = {
        .dtype = x->dtype,
        .table_dtype = table->dtype,
        .x = tfm__reference_input(call, 0),
        .pos = tfm__reference_input(call, 1),
        .table = tfm__reference_input(call, 2),
        .y = tfm__reference_output(call, 0),
        .heads = (size_t)x->shape[1],
        .head_dim = (size_t)x->shape[2],
        .pairs = (size_t)table->shape[1],
        .halves = call->node->attrs.rope_style == TFM_ROPE_HALVES,
    };
    const enum tfm_status status = tfm__reference_check_ids(call, 1, n, table->shape[0]);

    if (status == TFM_STATUS_OK)
        call->host->parallel_for(n, rotate_rows, &w);
    return status;
}
