/* SPDX-License-Identifier: MIT
 * linear: y = x W^T (+ b); see lib/ops/linear.c. Threads share the output features. A tile of rows
 * of x is converted to double once for a group of features, a row of W once for a tile. The sum of
 * one output is that of its chunks in order, whatever runs beside it. */
#include "backends/reference/dot.h"
#include "backends/reference/reference.h"

enum { ROWS = 16, FEATURES = 64, CHUNK = TFM__REFERENCE_CHUNK };

struct work {
    enum tfm_dtype x_dtype, w_dtype;
    const void *x, *weight, *bias; /* bias may be NULL */
    void *y;
    size_t rows, in, out;
};

/* Outputs of `rows` <= ROWS rows from `row` on and `features` <= FEATURES features from `feature`.
 */
static void multiply_tile(const struct work *w, size_t row, size_t rows, size_t feature,
                          size_t features)
{
    double x[ROWS][CHUNK], weight[CHUNK], sum[FEATURES][ROWS];

    for (size_t first = 0; first < w->in; first += CHUNK) {
        const size_t length = tfm__reference_length(w->in, first);
        for (size_t r = 0; r < rows; r++)
            tfm_dtype_to_f64(w->x_dtype, w->x, (row + r) * w->in + first, length, x[r]);
        for (size_t f = 0; f < features; f++) {
            tfm_dtype_to_f64(w->w_dtype, w->weight, (feature + f) * w->in + first, length, weight);
            for (size_t r = 0; r < rows; r++) {
                const double part = tfm__reference_dot(x[r], weight, length);
                sum[f][r] = first ? sum[f][r] + part : part;
            }
        }
    }
    double bias[FEATURES] = {0};
    if (w->bias)
        tfm_dtype_to_f64(w->x_dtype, w->bias, feature, features, bias);
    for (size_t r = 0; r < rows; r++) {
        double y[FEATURES];
        for (size_t f = 0; f < features; f++)
            y[f] = sum[f][r] + bias[f];
        tfm_dtype_from_f64(w->x_dtype, y, w->y, (row + r) * w->out + feature, features);
    }
}

static void multiply_features(void *context, size_t begin, size_t end)
{
    const struct work *w = context;

    for (size_t feature = begin; feature < end; feature += FEATURES) {
        const size_t features = end - feature < FEATURES ? end - feature : FEATURES;
        for (size_t row = 0; row < w->rows; row += ROWS) {
            const size_t rows = w->rows - row < ROWS ? w->rows - row : ROWS;
            multiply_tile(w, row, rows, feature, features);
        }
    }
}

enum tfm_status tfm__reference_linear(const struct tfm__reference_call *call)
{
    const struct tfm_tensor *x = call->node->inputs[0], *weight = call->node->inputs[1];
    const int biased = call->node->n_inputs > 2 && call->node->inputs[2];
    struct work w = {
        .x_dtype = x->dtype,
        .w_dtype = weight->dtype,
        .x = tfm__reference_input(call, 0),
        .weight = tfm__reference_input(call, 1),
        .bias = biased ? tfm__reference_input(call, 2) : NULL,
        .y = tfm__reference_output(call, 0),
        .rows = tfm__reference_vectors(x, call->rows),
        .in = (size_t)weight->shape[1],
        .out = (size_t)weight->shape[0],
    };

    if (w.rows > 0)
        call->host->parallel_for(w.out, multiply_features, &w);
    return TFM_STATUS_OK;
}
