/* SPDX-License-Identifier: MIT
 * linear_grad_x: dx = dy W; see lib/ops/linear_grad_x.c. Threads share the vectors; a vector is summed over the
 * output features in order. */
#include "backends/reference/reference.h"

enum { CHUNK = TFM__REFERENCE_CHUNK };

struct work {
    enum tfm_dtype dtype, w_dtype;
    const void *weight, *dy;
    void *dx;
    size_t in, out;
};

static void multiply_vectors(void *context, size_t begin, size_t end)
{
    const struct work *w = context;
    double dy[CHUNK], weight[CHUNK], sum[CHUNK];

    for (size_t v = begin; v < end; v++) {
        for (size_t first = 0; first < w->in; first += CHUNK) {
            const size_t length = tfm__reference_length(w->in, first);
            for (size_t i = 0; i < length; i++)
                sum[i] = 0;
            for (size_t o = 0; o < w->out; o++) {
                if (o % CHUNK == 0)
                    tfm_dtype_to_f64(w->dtype, w->dy, v * w->out + o,
                                     tfm__reference_length(w->out, o), dy);
                tfm_dtype_to_f64(w->w_dtype, w->weight, o * w->in + first, length, weight);
                for (size_t i = 0; i < length; i++)
                    sum[i] += dy[o % CHUNK] * weight[i];
            }
            tfm_dtype_from_f64(w->dtype, sum, w->dx, v * w->in + first, length);
        }
    }
}

enum tfm_status tfm__reference_linear_grad_x(const struct tfm__reference_call *call)
{
    const struct tfm_tensor *weight = call->node->inputs[0], *dy = call->node->inputs[1];
    struct work w = {
        .dtype = dy->dtype,
        .w_dtype = weight->dtype,
        .weight = tfm__reference_input(call, 0),
        .dy = tfm__reference_input(call, 1),
        .dx = tfm__reference_output(call, 0),
        .in = (size_t)weight->shape[1],
        .out = (size_t)weight->shape[0],
    };

    call->host->parallel_for(tfm__reference_vectors(dy, call->rows), multiply_vectors, &w);
    return TFM_STATUS_OK;
}
