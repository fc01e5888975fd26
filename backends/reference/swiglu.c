/* SPDX-License-Identifier: MIT
 * swiglu: y = silu(gate) * up; see lib/ops/swiglu.c. y may be gate. */
#include <math.h>

#include "backends/reference/reference.h"

struct work {
    enum tfm_dtype dtype;
    const void *gate, *up;
    void *y;
    size_t n;
};

static double silu(double g)
{
    /* exp(-g) overflows to infinity below -745 and the quotient is 0, except for -inf / inf */
    return g == -INFINITY ? 0.0 : g / (1.0 + exp(-g));
}

static void gate_chunks(void *context, size_t begin, size_t end)
{
    const struct work *w = context;

    for (size_t c = begin; c < end; c++) {
        double gate[TFM__REFERENCE_CHUNK], up[TFM__REFERENCE_CHUNK];
        const size_t first = c * TFM__REFERENCE_CHUNK;
        const size_t length = tfm__reference_length(w->n, first);
        tfm_dtype_to_f64(w->dtype, w->gate, first, length, gate);
        tfm_dtype_to_f64(w->dtype, w->up, first, length, up);
        for (size_t i = 0; i < length; i++)
            gate[i] = silu(gate[i]) * up[i];
        tfm_dtype_from_f64(w->dtype, gate, w->y, first, length);
    }
}

enum tfm_status tfm__reference_swiglu(const struct tfm__reference_call *call)
{
    const struct tfm_tensor *gate = call->node->inputs[0];
    struct work w = {
        .dtype = gate->dtype,
        .gate = tfm__reference_input(call, 0),
        .up = tfm__reference_input(call, 1),
        .y = tfm__reference_output(call, 0),
        .n = (size_t)(tfm_tensor_rows(gate, call->rows) * tfm_tensor_row_elements(gate)),
    };

    call->host->parallel_for(tfm__reference_chunks(w.n), gate_chunks, &w);
    return TFM_STATUS_OK;
}
