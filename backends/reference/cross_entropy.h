/* SPDX-License-Identifier: MIT
 * What cross_entropy and its gradient share: the logits of one class for a tile of rows. */
#ifndef TFM__REFERENCE_CROSS_ENTROPY_H
#define TFM__REFERENCE_CROSS_ENTROPY_H

#include <math.h>

#include "backends/reference/dot.h"
#include "backends/reference/reference.h"

/* Rows of a tile: a row of the weight is converted once for all of them. */
enum { TFM__CROSS_ENTROPY_ROWS = 16 };

struct tfm__cross_entropy {
    enum tfm_dtype dtype, w_dtype;
    const void *x, *weight, *targets;
    size_t rows, width, classes; /* N, D, V */
    double softcap;              /* of the logits; 0 = none */
};

/* OUT_OF_RANGE: a target that is neither a class nor -1. */
static inline enum tfm_status tfm__cross_entropy_open(const struct tfm__reference_call *call,
                                                      struct tfm__cross_entropy *c)
{
    const struct tfm_tensor *x = call->node->inputs[0], *weight = call->node->inputs[1];

    *c = (struct tfm__cross_entropy){
        .dtype = x->dtype,
        .w_dtype = weight->dtype,
        .x = tfm__reference_input(call, 0),
        .weight = tfm__reference_input(call, 1),
        .targets = tfm__reference_input(call, 2),
        .rows = tfm__reference_vectors(x, call->rows),
        .width = (size_t)weight->shape[1],
        .classes = (size_t)weight->shape[0],
        .softcap = call->node->attrs.softcap,
    };
    return tfm__reference_check_ids(call, 2, c->rows, weight->shape[0]);
}

static inline size_t tfm__cross_entropy_rows(const struct tfm__cross_entropy *c, size_t row)
{
    return c->rows - row < TFM__CROSS_ENTROPY_ROWS ? c->rows - row : TFM__CROSS_ENTROPY_ROWS;
}

/* logit [rows] of a class before the soft cap; the sum runs over D in chunks from left to right. */
static inline void tfm__cross_entropy_logits(const struct tfm__cross_entropy *c, size_t row,
                                             size_t rows, size_t class, double *logit)
{
    double x[TFM__REFERENCE_CHUNK], weight[TFM__REFERENCE_CHUNK];

    for (size_t r = 0; r < rows; r++)
        logit[r] = 0;
    for (size_t first = 0; first < c->width; first += TFM__REFERENCE_CHUNK) {
        const size_t length = tfm__reference_length(c->width, first);
        tfm_dtype_to_f64(c->w_dtype, c->weight, class * c->width + first, length, weight);
        for (size_t r = 0; r < rows; r++) {
            tfm_dtype_to_f64(c->dtype, c->x, (row + r) * c->width + first, length, x);
            logit[r] += tfm__reference_dot(x, weight, length);
        }
    }
}

static inline double tfm__cross_entropy_cap(const struct tfm__cross_entropy *c, double logit)
{
    return c->softcap > 0 ? c->softcap * tanh(logit / c->softcap) : logit;
}

#endif
