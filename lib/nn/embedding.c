/* SPDX-License-Identifier: MIT
 * Embedding: row ids[n] of the table [V, D]. */
#include <tfm/nn.h>

#include "lib/nn/scope.h"

struct tfm_tensor *tfm_nn_embedding(struct tfm_graph *graph, const char *name,
                                    struct tfm_tensor *ids, int64_t vocab, int64_t width,
                                    enum tfm_dtype dtype)
{
    struct tfm__name buffer;

    if (!ids)
        return NULL;
    tfm_graph_scope_push(graph, "embedding", name);
    struct tfm_tensor *table = tfm_graph_parameter(graph, tfm__name_join(&buffer, name, "weight"),
                                                   dtype, 2, (int64_t[]){vocab, width});
    struct tfm_tensor *y = tfm_op_embedding(graph, table, ids);
    tfm_graph_scope_pop(graph);
    return y;
}
