/* SPDX-License-Identifier: MIT
 * Walks over the parameters and the buffers of a graph. */
#include <tfm/graph.h>

static enum tfm_status
walk(const struct tfm_graph *graph, enum tfm_tensor_kind kind,
     enum tfm_status (*visit)(void *context, const struct tfm_tensor *tensor), void *context)
{
    for (uint32_t i = 0; i < tfm_graph_tensor_count(graph); i++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(graph, i);
        if (tensor->kind != kind || tensor->view_of)
            continue;
        const enum tfm_status status = visit(context, tensor);
        if (status != TFM_STATUS_OK)
            return status;
    }
    return TFM_STATUS_OK;
}

enum tfm_status tfm_graph_parameters(const struct tfm_graph *graph,
                                     enum tfm_status (*visit)(void *context,
                                                              const struct tfm_tensor *tensor),
                                     void *context)
{
    return walk(graph, TFM_TENSOR_PARAMETER, visit, context);
}

enum tfm_status tfm_graph_buffers(const struct tfm_graph *graph,
                                  enum tfm_status (*visit)(void *context,
                                                           const struct tfm_tensor *tensor),
                                  void *context)
{
    return walk(graph, TFM_TENSOR_BUFFER, visit, context);
}
