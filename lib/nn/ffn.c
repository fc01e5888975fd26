/* SPDX-License-Identifier: MIT
 * SwiGLU feed-forward: down(silu(gate(x)) * up(x)), x [N, D], hidden [N, F]. */
#include <tfm/nn.h>

#include "lib/nn/scope.h"

struct tfm_tensor *tfm_nn_swiglu(struct tfm_graph *graph, const char *name, struct tfm_tensor *x,
                                 const struct tfm_nn_swiglu *config)
{
    struct tfm__name buffer;

    if (!x)
        return NULL;
    const int64_t width = x->shape[x->rank - 1];
    tfm_graph_scope_push(graph, "ffn_swiglu", name);
    struct tfm_tensor *gate = tfm_nn_linear(graph, tfm__name_join(&buffer, name, "gate"), x,
                                            config->width, config->gate, 0);
    struct tfm_tensor *up =
        tfm_nn_linear(graph, tfm__name_join(&buffer, name, "up"), x, config->width, config->up, 0);
    struct tfm_tensor *hidden = tfm_op_swiglu(graph, gate, up);
    struct tfm_tensor *y =
        tfm_nn_linear(graph, tfm__name_join(&buffer, name, "down"), hidden, width, config->down, 0);
    tfm_graph_scope_pop(graph);
    return y;
}
