/* SPDX-License-Identifier: MIT
 * Linear: y = x W^T (+ b), x [N, ..., in], W [out, in], b [out]. */
#include <tfm/nn.h>

#include "lib/nn/scope.h"

struct tfm_tensor *tfm_nn_linear(struct tfm_graph *graph, const char *name, struct tfm_tensor *x,
                                 int64_t out, enum tfm_dtype dtype, int bias)
{
    struct tfm__name buffer;
    struct tfm_tensor *b = NULL;

    if (!x)
        return NULL;
    tfm_graph_scope_push(graph, "linear", name);
    struct tfm_tensor *weight =
        tfm_graph_parameter(graph, tfm__name_join(&buffer, name, "weight"), dtype, 2,
                            (int64_t[]){out, x->shape[x->rank - 1]});
    if (bias)
        b = tfm_graph_parameter(graph, tfm__name_join(&buffer, name, "bias"),
                                tfm__companion_of(x->dtype), 1, (int64_t[]){out});
    struct tfm_tensor *y = weight && (b || !bias) ? tfm_op_linear(graph, x, weight, b) : NULL;
    tfm_graph_scope_pop(graph);
    return y;
}
