/* SPDX-License-Identifier: MIT
 * cross_entropy: loss and lse of each row; see lib/ops/cross_entropy.c. Threads share tiles of rows. A tile
 * keeps the largest logit so far and the sum of the others beside it, class by class, so that no logit is
 * kept. */
#include <math.h>

#include "backends/reference/cross_entropy.h"

struct work {
    struct tfm__cross_entropy c;
    void *loss, *lse;
};

static void finish(const struct work *w, size_t row, double most, double mass, double picked)
{
    const double rest = log(mass), lse = most + rest;
    const int32_t target = tfm__reference_i32(w->c.targets, row);
    const double loss = target < 0 ? 0 : (most - picked) + rest;

    tfm_dtype_from_f64(w->c.dtype, &loss, w->loss, row, 1);
    tfm_dtype_from_f64(w->c.dtype, &lse, w->lse, row, 1);
}

static void run_tiles(void *context, size_t begin, size_t end)
{
    const struct work *w = context;

    for (size_t tile = begin; tile < end; tile++) {
        const size_t row = tile * TFM__CROSS_ENTROPY_ROWS;
        const size_t rows = tfm__cross_entropy_rows(&w->c, row);
        double most[TFM__CROSS_ENTROPY_ROWS], mass[TFM__CROSS_ENTROPY_ROWS];
        double picked[TFM__CROSS_ENTROPY_ROWS];
        for (size_t r = 0; r < rows; r++) {
            most[r] = -INFINITY;
            mass[r] = picked[r] = 0;
        }
        for (size_t class = 0; class < w->c.classes; class ++) {
            double logit[TFM__CROSS_ENTROPY_ROWS];
            tfm__cross_entropy_logits(&w->c, row, rows, class, logit);
            for (size_t r = 0; r < rows; r++) {
                logit[r] = tfm__cross_entropy_cap(&w->c, logit[r]);
                if (logit[r] > most[r]) { /* a first one too: exp(-inf) = 0 */
                    mass[r] *= exp(most[r] - logit[r]);
                    most[r] = logit[r];
                }
                /* most is -inf as long as all were; -inf minus -inf is NaN */
                mass[r] += logit[r] == -INFINITY ? 0 : exp(logit[r] - most[r]);
                if (tfm__reference_i32(w->c.targets, row + r) == (int32_t) class)
                    picked[r] = logit[r];
            }
        }
        for (size_t r = 0; r < rows; r++)
            finish(w, row + r, most[r], mass[r], picked[r]);
    }
}

enum tfm_status tfm__reference_cross_entropy(const struct tfm__reference_call *call)
{
    struct work w;
    const enum tfm_status status = tfm__cross_entropy_open(call, &w.c);

    if (status != TFM_STATUS_OK)
        return status;
    w.loss = tfm__reference_output(call, 0);
    w.lse = tfm__reference_output(call, 1);
    if (w.c.rows > 0)
        call->host->parallel_for((w.c.rows + TFM__CROSS_ENTROPY_ROWS - 1) / TFM__CROSS_ENTROPY_ROWS,
                                 run_tiles, &w);
    return TFM_STATUS_OK;
}
