/* SPDX-License-Identifier: MIT
 * The gradients of both norms; see lib/ops/rms_norm_grad.c and layer_norm_grad.c. Threads share the rows of dx, then
 * the columns of the sums: a sum runs over the rows in order and is then added to what was there. */
#include "backends/reference/norm_grad.h"

#include <math.h>

enum { CHUNK = TFM__REFERENCE_CHUNK };

struct work {
    enum tfm_dtype dtype;
    const void *x, *gamma, *dy;
    void *dx, *dgamma, *dbeta; /* the sums may be NULL */
    size_t vectors, width;
    double eps;
    int centered;
};

/* What is needed of a row: m and r. */
struct moments {
    double mean, factor;
};

/* The chunk of x at `at` as n = (x - m) r, and g = dy gamma. */
static size_t load(const struct work *w, const struct moments *m, size_t row, size_t first,
                   double *n, double *g)
{
    const size_t length = tfm__reference_length(w->width, first), at = row * w->width + first;
    double gamma[CHUNK];

    tfm_dtype_to_f64(w->dtype, w->x, at, length, n);
    tfm_dtype_to_f64(w->dtype, w->dy, at, length, g);
    tfm_dtype_to_f64(w->dtype, w->gamma, first, length, gamma);
    for (size_t i = 0; i < length; i++) {
        n[i] = (n[i] - m->mean) * m->factor;
        g[i] *= gamma[i];
    }
    return length;
}

static struct moments moments_of(const struct work *w, size_t row)
{
    struct moments m = {0, 1};
    double x[CHUNK], sum = 0, squares = 0;

    for (size_t first = 0; first < w->width && w->centered; first += CHUNK) {
        const size_t length = tfm__reference_length(w->width, first);
        tfm_dtype_to_f64(w->dtype, w->x, row * w->width + first, length, x);
        for (size_t i = 0; i < length; i++)
            sum += x[i];
    }
    m.mean = sum / (double)w->width;
    for (size_t first = 0; first < w->width; first += CHUNK) {
        const size_t length = tfm__reference_length(w->width, first);
        tfm_dtype_to_f64(w->dtype, w->x, row * w->width + first, length, x);
        for (size_t i = 0; i < length; i++)
            squares += (x[i] - m.mean) * (x[i] - m.mean);
    }
    m.factor = 1.0 / sqrt(squares / (double)w->width + w->eps);
    return m;
}

static void differentiate_rows(void *context, size_t begin, size_t end)
{
    const struct work *w = context;
    double n[CHUNK], g[CHUNK];

    for (size_t row = begin; row < end; row++) {
        const struct moments m = moments_of(w, row);
        double mean_g = 0, mean_gn = 0;
        for (size_t first = 0; first < w->width; first += CHUNK) {
            const size_t length = load(w, &m, row, first, n, g);
            for (size_t i = 0; i < length; i++) {
                mean_g += g[i];
                mean_gn += g[i] * n[i];
            }
        }
        mean_g = w->centered ? mean_g / (double)w->width : 0;
        mean_gn /= (double)w->width;
        for (size_t first = 0; first < w->width; first += CHUNK) {
            const size_t length = load(w, &m, row, first, n, g);
            for (size_t i = 0; i < length; i++)
                g[i] = m.factor * (g[i] - mean_g - n[i] * mean_gn);
            tfm_dtype_from_f64(w->dtype, g, w->dx, row * w->width + first, length);
        }
    }
}

static void add_to(const struct work *w, void *state, size_t first, size_t n, const double *sum)
{
    double values[CHUNK];

    if (!state)
        return;
    tfm_dtype_to_f64(w->dtype, state, first, n, values);
    for (size_t i = 0; i < n; i++)
        values[i] += sum[i];
    tfm_dtype_from_f64(w->dtype, values, state, first, n);
}

/* Chunk c of the columns, over all rows. */
static void sum_columns(void *context, size_t begin, size_t end)
{
    const struct work *w = context;

    for (size_t c = begin; c < end; c++) {
        double x[CHUNK], dy[CHUNK], dgamma[CHUNK] = {0}, dbeta[CHUNK] = {0};
        const size_t first = c * CHUNK, length = tfm__reference_length(w->width, first);
        for (size_t row = 0; row < w->vectors; row++) {
            const struct moments m = moments_of(w, row);
            tfm_dtype_to_f64(w->dtype, w->x, row * w->width + first, length, x);
            tfm_dtype_to_f64(w->dtype, w->dy, row * w->width + first, length, dy);
            for (size_t i = 0; i < length; i++) {
                dgamma[i] += dy[i] * (x[i] - m.mean) * m.factor;
                dbeta[i] += dy[i];
            }
        }
        add_to(w, w->dgamma, first, length, dgamma);
        add_to(w, w->dbeta, first, length, dbeta);
    }
}

enum tfm_status tfm__reference_norm_grad(const struct tfm__reference_call *call, int centered)
{
    const struct tfm_tensor *x = call->node->inputs[0];
    struct work w = {
        .dtype = x->dtype,
        .x = tfm__reference_input(call, 0),
        .gamma = tfm__reference_input(call, 1),
        .dy = tfm__reference_input(call, 2),
        .dx = tfm__reference_output(call, 0),
        .dgamma = tfm__reference_state(call, 3),
        .dbeta = centered ? tfm__reference_state(call, 4) : NULL,
        .vectors = tfm__reference_vectors(x, call->rows),
        .width = tfm__reference_width(x),
        .eps = call->node->attrs.eps,
        .centered = centered,
    };

    if (w.vectors > 0 && (w.dgamma || w.dbeta))
        call->host->parallel_for(tfm__reference_chunks(w.width), sum_columns, &w);
    call->host->parallel_for(w.vectors, differentiate_rows, &w);
    return TFM_STATUS_OK;
}
