/* SPDX-License-Identifier: MIT
 * cross_entropy_grad: dx = g W, dW += g^T x; see lib/ops/cross_entropy_grad.c. Threads share tiles of rows for dx
 * and classes for dW: each computes the logits that it needs, so that none is kept and no sum is shared. */
#include <math.h>

#include "backends/reference/cross_entropy.h"
#include "backends/reference/gates.h"

enum { CHUNK = TFM__REFERENCE_CHUNK, ROWS = TFM__CROSS_ENTROPY_ROWS };

struct work {
    struct tfm__cross_entropy c;
    const void *lse, *dloss;
    void *dx, *dweight; /* dweight may be NULL */
};

/* What the soft cap leaves of the gradient of a logit: 1 - tanh(z)^2 = 4 s (1 - s) with s = sigmoid(2 z), which
 * keeps its digits far out. */
static double bend(const struct work *w, double logit)
{
    const double z = w->c.softcap > 0 ? 2 * logit / w->c.softcap : 0;
    return 4 * tfm__gate_sigmoid(z) * tfm__gate_sigmoid(-z);
}

/* g [rows] of a class. */
static void slopes(const struct work *w, size_t row, size_t rows, size_t class, double *g)
{
    double lse[ROWS], dloss[ROWS];

    tfm__cross_entropy_logits(&w->c, row, rows, class, g);
    tfm_dtype_to_f64(w->c.dtype, w->lse, row, rows, lse);
    tfm_dtype_to_f64(w->c.dtype, w->dloss, row, rows, dloss);
    for (size_t r = 0; r < rows; r++) {
        const int32_t target = tfm__reference_i32(w->c.targets, row + r);
        const double logit = tfm__cross_entropy_cap(&w->c, g[r]);
        const double p = exp(logit - lse[r]) - (target == (int32_t) class ? 1 : 0);
        g[r] = target < 0 ? 0 : dloss[r] * p * bend(w, g[r]);
    }
}

/* Columns [first, first + length) of dx of one tile. */
static void run_dx(void *context, size_t begin, size_t end)
{
    const struct work *w = context;

    for (size_t tile = begin; tile < end; tile++) {
        const size_t row = tile * ROWS, rows = tfm__cross_entropy_rows(&w->c, row);
        for (size_t first = 0; first < w->c.width; first += CHUNK) {
            const size_t length = tfm__reference_length(w->c.width, first);
            double sum[ROWS][CHUNK] = {{0}}, weight[CHUNK], g[ROWS];
            for (size_t class = 0; class < w->c.classes; class ++) {
                slopes(w, row, rows, class, g);
                tfm_dtype_to_f64(w->c.w_dtype, w->c.weight, class * w->c.width + first, length,
                                 weight);
                for (size_t r = 0; r < rows; r++) {
                    for (size_t i = 0; i < length && g[r] != 0; i++)
                        sum[r][i] += g[r] * weight[i];
                }
            }
            for (size_t r = 0; r < rows; r++)
                tfm_dtype_from_f64(w->c.dtype, sum[r], w->dx, (row + r) * w->c.width + first,
                                   length);
        }
    }
}

/* Columns [first, first + length) of dweight of one class. */
static void add_class(const struct work *w, size_t class, size_t first, size_t length)
{
    double sum[CHUNK] = {0}, x[CHUNK], g[ROWS];

    for (size_t row = 0; row < w->c.rows; row += ROWS) {
        const size_t rows = tfm__cross_entropy_rows(&w->c, row);
        slopes(w, row, rows, class, g);
        for (size_t r = 0; r < rows; r++) {
            tfm_dtype_to_f64(w->c.dtype, w->c.x, (row + r) * w->c.width + first, length, x);
            for (size_t i = 0; i < length && g[r] != 0; i++)
                sum[i] += g[r] * x[i];
        }
    }
    tfm_dtype_to_f64(w->c.dtype, w->dweight, class * w->c.width + first, length, x);
    for (size_t i = 0; i < length; i++)
        x[i] += sum[i];
    tfm_dtype_from_f64(w->c.dtype, x, w->dweight, class * w->c.width + first, length);
}

static void run_dweight(void *context, size_t begin, size_t end)
{
    const struct work *w = context;

    for (size_t class = begin; class < end; class ++) {
        for (size_t first = 0; first < w->c.width; first += CHUNK)
            add_class(w, class, first, tfm__reference_length(w->c.width, first));
    }
}

enum tfm_status tfm__reference_cross_entropy_grad(const struct tfm__reference_call *call)
{
    struct work w;
    const enum tfm_status status = tfm__cross_entropy_open(call, &w.c);

    if (status != TFM_STATUS_OK)
        return status;
    w.lse = tfm__reference_input(call, 3);
    w.dloss = tfm__reference_input(call, 4);
    w.dweight = tfm__reference_state(call, 5);
    w.dx = tfm__reference_output(call, 0);
    if (w.c.rows > 0)
        call->host->parallel_for((w.c.rows + ROWS - 1) / ROWS, run_dx, &w);
    if (w.c.rows > 0 && w.dweight)
        call->host->parallel_for(w.c.classes, run_dweight, &w);
    return TFM_STATUS_OK;
}
