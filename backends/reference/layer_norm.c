/* SPDX-License-Identifier: MIT
 * layer_norm: y = (x - m) / sqrt(v + eps) * gamma + beta; see lib/ops/layer_norm.c. y may be x: a row is
 * read to its end before a value of it is written, and each value is read again before it is. */
#include <math.h>

#include "backends/reference/dot.h"
#include "backends/reference/reference.h"

enum { CHUNK = TFM__REFERENCE_CHUNK };

struct work {
    enum tfm_dtype dtype, gamma_dtype;
    const void *x, *gamma, *beta; /* beta may be NULL */
    void *y;
    size_t width;
    double eps;
};

/* Mean of x - shift, or of its square. */
static double mean_of(const struct work *w, size_t start, double shift, int squared)
{
    double x[CHUNK], ones[CHUNK], sum = 0;

    for (size_t i = 0; i < CHUNK; i++)
        ones[i] = 1;
    for (size_t first = 0; first < w->width; first += CHUNK) {
        const size_t length = tfm__reference_length(w->width, first);
        tfm_dtype_to_f64(w->dtype, w->x, start + first, length, x);
        for (size_t i = 0; i < length; i++)
            x[i] -= shift;
        sum += tfm__reference_dot(x, squared ? x : ones, length);
    }
    return sum / (double)w->width;
}

static void norm_row(const struct work *w, size_t row)
{
    double x[CHUNK], gamma[CHUNK], beta[CHUNK] = {0};
    const size_t start = row * w->width;
    double mean = mean_of(w, start, 0, 0);

    /* what rounding left of it: a constant row has no variance, in f64 either */
    mean += mean_of(w, start, mean, 0);
    const double factor = 1.0 / sqrt(mean_of(w, start, mean, 1) + w->eps);
    for (size_t first = 0; first < w->width; first += CHUNK) {
        const size_t length = tfm__reference_length(w->width, first);
        tfm_dtype_to_f64(w->dtype, w->x, start + first, length, x);
        tfm_dtype_to_f64(w->gamma_dtype, w->gamma, first, length, gamma);
        if (w->beta)
            tfm_dtype_to_f64(w->gamma_dtype, w->beta, first, length, beta);
        for (size_t i = 0; i < length; i++)
            x[i] = (x[i] - mean) * factor * gamma[i] + beta[i];
        tfm_dtype_from_f64(w->dtype, x, w->y, start + first, length);
    }
}

static void norm_rows(void *context, size_t begin, size_t end)
{
    for (size_t row = begin; row < end; row++)
        norm_row(context, row);
}

enum tfm_status tfm__reference_layer_norm(const struct tfm__reference_call *call)
{
    const struct tfm_tensor *x = call->node->inputs[0];
    const int has_beta = call->node->n_inputs > 2 && call->node->inputs[2];
    struct work w = {
        .dtype = x->dtype,
        .gamma_dtype = call->node->inputs[1]->dtype,
        .x = tfm__reference_input(call, 0),
        .gamma = tfm__reference_input(call, 1),
        .beta = has_beta ? tfm__reference_input(call, 2) : NULL,
        .y = tfm__reference_output(call, 0),
        .width = tfm__reference_width(x),
        .eps = call->node->attrs.eps,
    };

    call->host->parallel_for(tfm__reference_vectors(x, call->rows), norm_rows, &w);
    return TFM_STATUS_OK;
}
