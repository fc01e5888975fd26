/* SPDX-License-Identifier: MIT
 * sum_squares: sum of x^2; see lib/ops/sum_squares.c. One sum in double, in order. */
#include "backends/reference/reference.h"

enum tfm_status tfm__reference_sum_squares(const struct tfm__reference_call *call)
{
    const struct tfm_tensor *x = call->node->inputs[0];
    const size_t n = (size_t)tfm_tensor_elements(x);
    double values[TFM__REFERENCE_CHUNK], sum = 0;

    if (call->rows->n == 0)
        return TFM_STATUS_OK;
    for (size_t first = 0; first < n; first += TFM__REFERENCE_CHUNK) {
        const size_t length = tfm__reference_length(n, first);
        tfm_dtype_to_f64(x->dtype, tfm__reference_input(call, 0), first, length, values);
        for (size_t i = 0; i < length; i++)
            sum += values[i] * values[i];
    }
    tfm_dtype_from_f64(x->dtype, &sum, tfm__reference_output(call, 0), 0, 1);
    return TFM_STATUS_OK;
}
