/* SPDX-License-Identifier: MIT
 * Intermediates that backward computes once more instead of keeping them from forward: memory for time (Chen et al.,
 * arXiv:1604.06174). The nodes that made them are appended again where a gradient first reads them, so that the
 * values of forward live no longer than forward itself needs them. */
#include <tfm/grad.h>

#include "lib/core/alloc.h"
#include "lib/core/graph.h"

static const struct tfm_node *maker_of(const struct tfm_graph *graph, const struct tfm_tensor *root)
{
    for (uint32_t n = graph->n_nodes; n-- > 0;) {
        const struct tfm_node *node = graph->nodes[n];
        for (uint32_t k = 0; k < node->n_outputs; k++) {
            if (node->outputs[k] == root)
                return node;
        }
    }
    return NULL;
}

/* A node that writes states (a cache) would do so twice. */
static int has_state(const struct tfm_node *node)
{
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        if (node->inputs[k] && tfm__tensor_root(node->inputs[k])->kind == TFM_TENSOR_STATE)
            return 1;
    }
    return 0;
}

struct tfm_tensor *tfm_graph_recompute(struct tfm_graph *graph, struct tfm_tensor *tensor)
{
    if (!tensor || !tfm__graph_open(graph, tensor->name))
        return NULL;
    const struct tfm_tensor *root = tfm__tensor_root(tensor);
    const struct tfm_node *maker =
        root->kind == TFM_TENSOR_INTERMEDIATE ? maker_of(graph, root) : NULL;
    if (!maker || has_state(maker)) {
        tfm_error_set(
            &graph->error, TFM_STATUS_INVALID_ARGUMENT,
            "recompute \"%s\": only what an op makes from inputs and parameters is computed "
            "twice",
            root->name);
        return NULL;
    }
    struct tfm__graph_gradient *entry = tfm__graph_gradient_entry(graph, root);
    if (!entry)
        return NULL;
    entry->recomputed = 1;
    return tensor;
}

/* The output of a second node like `maker` that is the second `root`. */
static struct tfm_tensor *append_again(struct tfm_graph *graph, const struct tfm_node *maker,
                                       const struct tfm_tensor *root)
{
    struct tfm__graph_scope *scope = graph->scope;
    struct tfm_tensor *inputs[TFM_MAX_INPUTS] = {0}, *outputs[TFM_MAX_OUTPUTS];
    struct tfm_tensor *made = NULL;

    for (uint32_t k = 0; k < maker->n_inputs; k++) {
        inputs[k] = tfm__graph_again(graph, (struct tfm_tensor *)maker->inputs[k]);
        if (maker->inputs[k] && !inputs[k])
            return NULL;
    }
    graph->scope = (struct tfm__graph_scope *)maker->scope;
    if (tfm__graph_append_node(graph, maker->op, inputs, maker->n_inputs, &maker->attrs, outputs)) {
        for (uint32_t k = 0; k < maker->n_outputs; k++) {
            if (maker->outputs[k] == root)
                made = outputs[k];
        }
    }
    graph->scope = scope;
    return made;
}

struct tfm_tensor *tfm__graph_again(struct tfm_graph *graph, struct tfm_tensor *tensor)
{
    const struct tfm_tensor *root = tensor ? tfm__tensor_root(tensor) : NULL;

    if (!root || root->id >= graph->gradient_room || !graph->gradients[root->id].recomputed)
        return tensor;
    struct tfm_tensor *again = graph->gradients[root->id].again;
    if (!again) {
        again = append_again(graph, maker_of(graph, root), root);
        struct tfm__graph_gradient *entry = again ? tfm__graph_gradient_entry(graph, root) : NULL;
        if (!entry)
            return NULL;
        entry->again = again;
        entry->again_since = graph->backwards;
    }
    return tensor == root ? again : tfm_graph_reshape(graph, again, tensor->rank, tensor->shape);
}
