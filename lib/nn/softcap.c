/* SPDX-License-Identifier: MIT
 * cap tanh(x / cap), for x [N, V]: the op scale with a soft cap. */
#include <math.h>

#include <tfm/nn.h>

#include "lib/nn/scope.h"

struct tfm_tensor *tfm_nn_softcap(struct tfm_graph *graph, const char *name, struct tfm_tensor *x,
                                  double cap)
{
    struct tfm_tensor *y = NULL;

    if (!x)
        return NULL;
    tfm_graph_scope_push(graph, "softcap", name);
    if (cap > 0 && isfinite(cap))
        y = tfm_op_softcap(graph, x, cap);
    else
        tfm_graph_refuse(graph, TFM_STATUS_INVALID_ARGUMENT,
                         "softcap: %g; it must be positive and finite", cap);
    tfm_graph_scope_pop(graph);
    return y;
}
