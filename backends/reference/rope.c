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
    size_t tokens;                 /* T of a row, 1 in [N, H, d] */
    int halves, shared;            /* shared: pos [T] for all rows */
    int heads_first;               /* [N, H, T, d] */
    double sign;                   /* of the angle */
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

/* Token t of row n, in all heads: [N, H, d] is [N, 1, H, d]. */
static void rotate_token(const struct work *w, size_t n, size_t t)
{
    const size_t place = w->shared ? t : n * w->tokens + t;
    const size_t angles = (size_t)tfm__reference_i32(w->pos, place) * w->pairs * 2;
    const size_t bytes = tfm_dtype_info(w->dtype)->bytes;
    double pair[2 * PAIRS], cs[2 * PAIRS];

    for (size_t h = 0; h < w->heads; h++) {
        const size_t vector = w->heads_first ? (n * w->heads + h) * w->tokens + t
                                             : (n * w->tokens + t) * w->heads + h;
        const size_t head = vector * w->head_dim;
        for (size_t first = 0; first < w->pairs; first += PAIRS) {
            const size_t length = w->pairs - first < PAIRS ? w->pairs - first : PAIRS;
            tfm_dtype_to_f64(w->table_dtype, w->table, angles + 2 * first, 2 * length, cs);
            load_pairs(w, head, first, length, pair);
            for (size_t i = 0; i < 2 * length; i += 2) {
                const double a = pair[i], b = pair[i + 1], s = w->sign * cs[i + 1];
                pair[i] = a * cs[i] - b * s;
                pair[i + 1] = a * s + b * cs[i];
            }
            store_pairs(w, head, first, length, pair);
        }
        const size_t rest = head + 2 * w->pairs;
        if (w->y != w->x && 2 * w->pairs < w->head_dim)
            memcpy((unsigned char *)w->y + rest * bytes, (const unsigned char *)w->x + rest * bytes,
                   (w->head_dim - 2 * w->pairs) * bytes);
    }
}

static void rotate_tokens(void *context, size_t begin, size_t end)
{
    const struct work *w = context;

    for (size_t index = begin; index < end; index++)
        rotate_token(w, index / w->tokens, index % w->tokens);
}

enum tfm_status tfm__reference_rope(const struct tfm__reference_call *call)
{
    const struct tfm_tensor *x = call->node->inputs[0], *pos = call->node->inputs[1];
    const struct tfm_tensor *table = call->node->inputs[2];
    const int heads_first = call->node->attrs.rope_layout == TFM_ROPE_HEADS_FIRST;
    const int tokens_first = call->node->attrs.rope_layout == TFM_ROPE_TOKENS_FIRST;
    const size_t rows = (size_t)tfm_tensor_rows(x, call->rows);
    struct work w = {
        .dtype = x->dtype,
        .table_dtype = table->dtype,
        .x = tfm__reference_input(call, 0),
        .pos = tfm__reference_input(call, 1),
        .table = tfm__reference_input(call, 2),
        .y = tfm__reference_output(call, 0),
        .heads = (size_t)x->shape[tokens_first ? 2 : 1],
        .head_dim = tfm__reference_width(x),
        .pairs = (size_t)table->shape[1],
        .tokens = heads_first    ? (size_t)x->shape[2]
                  : tokens_first ? (size_t)x->shape[1]
                                 : 1,
        .halves = call->node->attrs.rope_style == TFM_ROPE_HALVES,
        .shared = (heads_first || tokens_first) && pos->rank == 1,
        .heads_first = heads_first,
        .sign = call->node->attrs.inverse ? -1 : 1,
    };
    const size_t positions = rows == 0 ? 0 : w.shared ? w.tokens : rows * w.tokens;
    const enum tfm_status status = tfm__reference_check_ids(call, 1, positions, table->shape[0]);

    if (status == TFM_STATUS_OK)
        call->host->parallel_for(rows * w.tokens, rotate_tokens, &w);
    return status;
}
