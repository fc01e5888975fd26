/* SPDX-License-Identifier: MIT
 * Taking back what was built since a mark, so that a graph goes on after a layer that was refused. */
#include <string.h>

#include "lib/core/alloc.h"
#include "lib/core/graph.h"
#include "lib/core/op.h"

void tfm_graph_mark(const struct tfm_graph *graph, struct tfm_graph_mark *mark)
{
    *mark = (struct tfm_graph_mark){
        .graph = graph,
        .tensors = graph->n_tensors,
        .nodes = graph->n_nodes,
        .scopes = graph->scopes,
        .scope = graph->scope,
        .makers = graph->makers,
        .outputs = graph->outputs,
        .backwards = graph->backwards,
    };
}

/* Is `scope` in the list from `from` on? No scope always is. */
static int has_scope(const struct tfm__graph_scope *from, const void *scope)
{
    while (from && scope && (const void *)from != scope)
        from = from->all;
    return !scope || from;
}

static int has_maker(const struct tfm__graph_maker *from, const void *maker)
{
    while (from && maker && (const void *)from != maker)
        from = from->next;
    return !maker || from;
}

static int has_output(const struct tfm__graph_output *from, const void *output)
{
    while (from && output && (const void *)from != output)
        from = from->next;
    return !output || from;
}

/* What would stay refers to nothing that would go: else the mark was taken behind a place to which the
 * graph has been rewound since. */
static int stands(const struct tfm_graph *graph, const struct tfm_graph_mark *mark)
{
    if (mark->graph != graph || mark->tensors > graph->n_tensors || mark->nodes > graph->n_nodes ||
        !has_scope(graph->scopes, mark->scopes) || !has_scope(mark->scopes, mark->scope) ||
        !has_maker(graph->makers, mark->makers) || !has_output(graph->outputs, mark->outputs))
        return 0;
    for (uint32_t n = 0; n < mark->nodes; n++) {
        const struct tfm_node *node = graph->nodes[n];
        if (!has_scope(mark->scopes, node->scope))
            return 0;
        for (uint32_t i = 0; i < node->n_inputs; i++)
            if (node->inputs[i] && node->inputs[i]->id >= mark->tensors)
                return 0;
        for (uint32_t i = 0; i < node->n_outputs; i++)
            if (node->outputs[i]->id >= mark->tensors)
                return 0;
    }
    for (const struct tfm__graph_maker *maker = mark->makers; maker; maker = maker->next)
        if (maker->buffer->id >= mark->tensors)
            return 0;
    for (const struct tfm__graph_output *output = mark->outputs; output; output = output->next)
        if (output->tensor->id >= mark->tensors)
            return 0;
    return 1;
}

/* Limits are those of the nodes that are left: their rules set them again. */
static void limit_again(struct tfm_graph *graph)
{
    for (uint32_t t = 0; t < graph->n_tensors; t++)
        graph->tensors[t]->limit = graph->tensors[t]->is_position = graph->tensors[t]->may_be_none =
            0;
    for (uint32_t n = 0; n < graph->n_nodes; n++) {
        struct tfm_tensor outputs[TFM_MAX_OUTPUTS] = {0};
        struct tfm_node node = *graph->nodes[n];
        struct tfm_error err = {0};
        (void)tfm__op_rule(node.op)->infer(&node, outputs, &err); /* it was right before */
    }
}

enum tfm_status tfm_graph_rewind(struct tfm_graph *graph, const struct tfm_graph_mark *mark,
                                 struct tfm_error *err)
{
    tfm_error_clear(err);
    if (atomic_load(&graph->frozen))
        return tfm_error_set(err, TFM_STATUS_BUSY,
                             "rewind: the graph was compiled and can no longer be changed; build "
                             "another one");
    if (!stands(graph, mark))
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "rewind: the mark of %u nodes and %u tensors is not of this graph, or "
                             "of a part that was taken back already",
                             mark->nodes, mark->tensors);
    tfm__graph_outputs_undo(graph, mark->outputs);
    tfm__graph_makers_free(graph, mark->makers);
    tfm__graph_gradients_undo(graph, mark->tensors, mark->backwards);
    while (graph->n_nodes > mark->nodes)
        tfm__free(graph->nodes[--graph->n_nodes]);
    while (graph->n_tensors > mark->tensors) {
        struct tfm_tensor *tensor = graph->tensors[--graph->n_tensors];
        tfm__free((char *)tensor->name);
        tfm__free(tensor);
    }
    tfm__graph_scopes_free(graph, mark->scopes);
    graph->scope = (struct tfm__graph_scope *)mark->scope;
    limit_again(graph);
    tfm_error_clear(&graph->error);
    return TFM_STATUS_OK;
}
