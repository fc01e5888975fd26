/* SPDX-License-Identifier: MIT
 * swiglu_grad: see lib/ops/swiglu_grad.c. dgate may be gate. */
#include "backends/reference/gates.h"
#include "backends/reference/reference.h"

enum { CHUNK = TFM__REFERENCE_CHUNK };

struct work {
    enum tfm_dtype dtype;
    const void *gate, *up, *dy;
    void *dgate, *dup;
    size_t n;
};

static void differentiate(void *context, size_t begin, size_t end)
{
    const struct work *w = context;
    double gate[CHUNK], up[CHUNK], dy[CHUNK];

    for (size_t c = begin; c < end; c++) {
        const size_t first = c * CHUNK, length = tfm__reference_length(w->n, first);
        tfm_dtype_to_f64(w->dtype, w->gate, first, length, gate);
        tfm_dtype_to_f64(w->dtype, w->up, first, length, up);
        tfm_dtype_to_f64(w->dtype, w->dy, first, length, dy);
        for (size_t i = 0; i < length; i++) {
            up[i] *= dy[i] * tfm__gate_silu_slope(gate[i]);
            dy[i] *= tfm__gate_silu(gate[i]);
        }
        tfm_dtype_from_f64(w->dtype, up, w->dgate, first, length);
        tfm_dtype_from_f64(w->dtype, dy, w->dup, first, length);
    }
}

enum tfm_status tfm__reference_swiglu_grad(const struct tfm__reference_call *call)
{
    const struct tfm_tensor *gate = call->node->inputs[0];
    struct work w = {
        .dtype = gate->dtype,
        .gate = tfm__reference_input(call, 0),
        .up = tfm__reference_input(call, 1),
        .dy = tfm__reference_input(call, 2),
        .dgate = tfm__reference_output(call, 0),
        .dup = tfm__reference_output(call, 1),
        .n = (size_t)(tfm_tensor_rows(gate, call->rows) * tfm_tensor_row_elements(gate)),
    };

    call->host->parallel_for(tfm__reference_chunks(w.n), differentiate, &w);
    return TFM_STATUS_OK;
}
