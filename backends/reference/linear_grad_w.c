/* SPDX-License-Identifier: MIT
 * linear_grad_w: dW += dy^T x, db += sum of dy; see lib/ops/linear_grad_w.c. Threads share the output features;
 * a sum runs over the vectors in order and is then added to what was there. */
#include "backends/reference/reference.h"

enum { CHUNK = TFM__REFERENCE_CHUNK };

struct work {
    enum tfm_dtype dtype;
    const void *x, *dy;
    void *dw, *db; /* one may be NULL */
    size_t vectors, in, out;
};

static void add_to(enum tfm_dtype dtype, void *state, size_t first, size_t n, const double *sum)
{
    double values[CHUNK];

    tfm_dtype_to_f64(dtype, state, first, n, values);
    for (size_t i = 0; i < n; i++)
        values[i] += sum[i];
    tfm_dtype_from_f64(dtype, values, state, first, n);
}

static void sum_features(void *context, size_t begin, size_t end)
{
    const struct work *w = context;
    double x[CHUNK], sum[CHUNK], dy;

    for (size_t o = begin; o < end; o++) {
        double total = 0;
        for (size_t v = 0; v < w->vectors && w->db; v++) {
            tfm_dtype_to_f64(w->dtype, w->dy, v * w->out + o, 1, &dy);
            total += dy;
        }
        if (w->db)
            add_to(w->dtype, w->db, o, 1, &total);
        for (size_t first = 0; first < w->in && w->dw; first += CHUNK) {
            const size_t length = tfm__reference_length(w->in, first);
            for (size_t i = 0; i < length; i++)
                sum[i] = 0;
            for (size_t v = 0; v < w->vectors; v++) {
                tfm_dtype_to_f64(w->dtype, w->dy, v * w->out + o, 1, &dy);
                tfm_dtype_to_f64(w->dtype, w->x, v * w->in + first, length, x);
                for (size_t i = 0; i < length; i++)
                    sum[i] += dy * x[i];
            }
            add_to(w->dtype, w->dw, o * w->in + first, length, sum);
        }
    }
}

enum tfm_status tfm__reference_linear_grad_w(const struct tfm__reference_call *call)
{
    const struct tfm_tensor *x = call->node->inputs[0], *dy = call->node->inputs[1];
    struct work w = {
        .dtype = x->dtype,
        .x = tfm__reference_input(call, 0),
        .dy = tfm__reference_input(call, 1),
        .dw = tfm__reference_state(call, 2),
        .db = tfm__reference_state(call, 3),
        .vectors = tfm__reference_vectors(x, call->rows),
        .in = tfm__reference_width(x),
        .out = tfm__reference_width(dy),
    };

    if (w.vectors > 0)
        call->host->parallel_for(w.out, sum_features, &w);
    return TFM_STATUS_OK;
}
