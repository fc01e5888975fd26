/* SPDX-License-Identifier: MIT
 * rms_norm: y = x / sqrt(mean(x^2) + eps) * gamma; see lib/ops/rms_norm.c. y may be x: a row is
 * read to its end before a value of it is written, and each value is read again before it is. */
#include <math.h>

#include "backends/reference/dot.h"
#include "backends/reference/reference.h"

struct work {
    enum tfm_dtype dtype, gamma_dtype;
    const void *x, *gamma;
    void *y;
    size_t width;
    double eps;
};

static void norm_row(const struct work *w, size_t row)
{
    double x[TFM__REFERENCE_CHUNK], gamma[TFM__REFERENCE_CHUNK];
    const size_t start = row * w->width;
    double squares = 0;

    for (size_t first = 0; first < w->width; first += TFM__REFERENCE_CHUNK) {
        const size_t length = tfm__reference_length(w->width, first);
        tfm_dtype_to_f64(w->dtype, w->x, start + first, length, x);
        squares += tfm__reference_dot(x, x, length);
    }
    const double factor = 1.0 / sqrt(squares / (double)w->width + w->eps);
    for (size_t first = 0; first < w->width; first += TFM__REFERENCE_CHUNK) {
        const size_t length = tfm__reference_length(w->width, first);
        tfm_dtype_to_f64(w->dtype, w->x, start + first, length, x);
        tfm_dtype_to_f64(w->gamma_dtype, w->gamma, first, length, gamma);
        for (size_t i = 0; i < length; i++)
            x[i] = x[i] * factor * gamma[i];
        tfm_dtype_from_f64(w->dtype, x, w->y, start + first, length);
    }
}

static void norm_rows(void *context, size_t begin, size_t end)
{
    for (size_t row = begin; row < end; row++)
        norm_row(context, row);
}

enum tfm_status tfm__reference_rms_norm(const struct tfm__reference_call *call)
{
    const struct tfm_tensor *x = call->node->inputs[0];
    struct work w = {
        .dtype = x->dtype,
        .gamma_dtype = call->node->inputs[1]->dtype,
        .x = tfm__reference_input(call, 0),
        .gamma = tfm__reference_input(call, 1),
        .y = tfm__reference_output(call, 0),
        .width = tfm__reference_width(x),
        .eps = call->node->attrs.eps,
    };

    call->host->parallel_for(tfm__reference_vectors(x, call->rows), norm_rows, &w);
    return TFM_STATUS_OK;
}
