/* SPDX-License-Identifier: MIT
 * RMSNorm: x / sqrt(mean(x^2) + eps) * gamma over the last extent. */
#include <tfm/nn.h>

#include "lib/nn/scope.h"

struct tfm_tensor *tfm_nn_rms_norm(struct tfm_graph *graph, const char *name, struct tfm_tensor *x,
                                   double eps)
{
    struct tfm__name buffer;

    if (!x)
        return NULL;
    tfm_graph_scope_push(graph, "rms_norm", name);
    struct tfm_tensor *gamma =
        tfm_graph_parameter(graph, tfm__name_join(&buffer, name, "weight"),
                            x->dtype == TFM_DTYPE_F64 ? TFM_DTYPE_F64 : TFM_DTYPE_F32, 1,
                            (int64_t[]){x->shape[x->rank - 1]});
    struct tfm_tensor *y = tfm_op_rms_norm(graph, x, gamma, eps);
    tfm_graph_scope_pop(graph);
    return y;
}
