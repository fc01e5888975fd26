/* SPDX-License-Identifier: MIT
 * Reverse-mode differentiation of a graph: walks the nodes backwards and lets the rule of each append the
 * nodes of its gradient. Knows no op by name, but for `add`, which sums the gradients of several uses. */
#include <stdio.h>
#include <string.h>

#include <tfm/grad.h>

#include "lib/core/alloc.h"
#include "lib/core/graph.h"
#include "lib/core/op.h"

/* ---- what is known of each tensor ---- */

struct tfm__graph_gradient *tfm__graph_gradient_entry(struct tfm_graph *graph,
                                                      const struct tfm_tensor *root)
{
    if (root->id >= graph->gradient_room) {
        const uint32_t room = graph->tensor_room;
        struct tfm__graph_gradient *grown = tfm__alloc_array(room, sizeof *grown);
        if (!grown) {
            tfm_error_set(&graph->error, TFM_STATUS_NOMEM, "gradient: out of memory");
            return NULL;
        }
        if (graph->gradient_room)
            memcpy(grown, graph->gradients, graph->gradient_room * sizeof *grown);
        tfm__free(graph->gradients);
        graph->gradients = grown;
        graph->gradient_room = room;
    }
    return &graph->gradients[root->id];
}

void tfm__graph_gradients_undo(struct tfm_graph *graph, uint32_t end, uint32_t backwards)
{
    for (uint32_t i = 0; i < graph->gradient_room; i++) {
        struct tfm__graph_gradient *g = &graph->gradients[i];
        if (i >= end)
            *g = (struct tfm__graph_gradient){0};
        else if (g->since > backwards)
            g->tensor = NULL;
        if (g->again_since > backwards)
            g->again = NULL;
    }
    graph->backwards = backwards;
}

static int is_watched(const struct tfm_graph *graph, const struct tfm_tensor *root)
{
    return root->id < graph->gradient_room && graph->gradients[root->id].watched;
}

static struct tfm_tensor *gradient_of(const struct tfm_graph *graph, const struct tfm_tensor *root)
{
    return root->id < graph->gradient_room ? graph->gradients[root->id].tensor : NULL;
}

static int is_float(const struct tfm_tensor *tensor)
{
    return tfm_dtype_info(tensor->dtype)->dtype_class == TFM_DTYPE_FLOAT;
}

struct tfm_tensor *tfm_graph_watch(struct tfm_graph *graph, struct tfm_tensor *tensor)
{
    if (!tensor || !tfm__graph_open(graph, tensor->name))
        return NULL;
    const struct tfm_tensor *root = tfm__tensor_root(tensor);
    if (root->extent == TFM_EXTENT_FIXED || !is_float(root)) {
        struct tfm__shape_text shape;
        tfm_error_set(
            &graph->error, TFM_STATUS_INVALID_ARGUMENT,
            "watch \"%s\": only inputs and results of ops of a float dtype have a gradient, "
            "this is %s %s; a parameter is trained instead",
            root->name, tfm_dtype_name(root->dtype), tfm__shape_format(root, &shape));
        return NULL;
    }
    struct tfm__graph_gradient *entry = tfm__graph_gradient_entry(graph, root);
    if (!entry)
        return NULL;
    entry->watched = 1;
    return tensor;
}

static void state_name(const struct tfm_tensor *parameter, char *name, size_t size)
{
    snprintf(name, size, "%s.grad", parameter->name);
}

struct tfm_tensor *tfm_graph_gradient(const struct tfm_graph *graph,
                                      const struct tfm_tensor *tensor)
{
    const struct tfm_tensor *root = tfm__tensor_root(tensor);
    char name[256];

    if (root->kind != TFM_TENSOR_PARAMETER)
        return gradient_of(graph, root);
    state_name(root, name, sizeof name);
    const struct tfm_tensor *state = root->is_trainable ? tfm_graph_find(graph, name) : NULL;
    return state && state->kind == TFM_TENSOR_STATE ? (struct tfm_tensor *)state : NULL;
}

/* ---- for the rules ---- */

struct tfm_tensor *tfm__gradient_input(const struct tfm__gradient *g, uint32_t input)
{
    return input < g->node->n_inputs
               ? tfm__graph_again(g->graph, (struct tfm_tensor *)g->node->inputs[input])
               : NULL;
}

struct tfm_tensor *tfm__gradient_output(const struct tfm__gradient *g, uint32_t output)
{
    return tfm__graph_more_output(g->graph, g->node, output);
}

struct tfm_tensor *tfm__gradient_state(struct tfm__gradient *g, uint32_t input)
{
    const struct tfm_tensor *tensor = input < g->node->n_inputs ? g->node->inputs[input] : NULL;
    char name[256];

    if (!tensor || !g->wanted[input])
        return NULL;
    g->asked |= 1u << input;
    const struct tfm_tensor *root = tfm__tensor_root(tensor);
    state_name(root, name, sizeof name);
    struct tfm_tensor *state = tfm_graph_state(
        g->graph, name, root->dtype == TFM_DTYPE_F64 ? TFM_DTYPE_F64 : TFM_DTYPE_F32, root->rank,
        root->shape);
    return tensor == root ? state : tfm_graph_reshape(g->graph, state, tensor->rank, tensor->shape);
}

/* ---- the walk ---- */

/* wanted[id] of each root tensor: something trainable or watched lies behind it. */
static void mark_wanted(const struct tfm_graph *graph, uint32_t n_nodes, unsigned char *wanted)
{
    for (uint32_t t = 0; t < graph->n_tensors; t++) {
        const struct tfm_tensor *tensor = graph->tensors[t];
        wanted[t] = (tensor->kind == TFM_TENSOR_PARAMETER && tensor->is_trainable) ||
                    is_watched(graph, tensor);
    }
    for (uint32_t n = 0; n < n_nodes; n++) {
        const struct tfm_node *node = graph->nodes[n];
        int any = 0;
        for (uint32_t k = 0; k < node->n_inputs; k++)
            any |= node->inputs[k] && wanted[tfm__tensor_root(node->inputs[k])->id];
        for (uint32_t k = 0; k < node->n_outputs && any; k++)
            wanted[node->outputs[k]->id] = is_float(node->outputs[k]);
    }
}

/* Adds `part`, the gradient of `tensor`, to what its root has. */
static void accumulate(struct tfm_graph *graph, const struct tfm_tensor *tensor,
                       struct tfm_tensor *part)
{
    const struct tfm_tensor *root = tfm__tensor_root(tensor);

    if (tensor != root)
        part = tfm_graph_reshape(graph, part, root->rank, root->shape);
    struct tfm_tensor *so_far = gradient_of(graph, root);
    if (so_far)
        part = tfm_op_add(graph, so_far, part);
    /* last: what was appended may have moved the entries */
    struct tfm__graph_gradient *entry = part ? tfm__graph_gradient_entry(graph, root) : NULL;
    if (entry) {
        entry->tensor = part;
        entry->since = graph->backwards;
    }
}

static void refuse(struct tfm_graph *graph, const struct tfm_node *node, const char *what)
{
    char list[300];

    tfm__operands_format(node, NULL, list, sizeof list);
    tfm_error_set(&graph->error, TFM_STATUS_UNSUPPORTED,
                  "%s: %s has no gradient%s; got %s; freeze what lies before it",
                  tfm__layer_name(node), tfm_op_name(node->op), what, list);
}

/* What the rule has made, to the inputs of the node. */
static void take(struct tfm__gradient *g)
{
    for (uint32_t k = 0; k < g->node->n_inputs; k++) {
        const struct tfm_tensor *input = g->node->inputs[k];
        if (!g->wanted[k] || g->graph->error.status != TFM_STATUS_OK)
            continue;
        if (input->extent == TFM_EXTENT_FIXED && !(g->asked >> k & 1)) {
            char what[300];
            snprintf(what, sizeof what, " for \"%.200s\"", tfm__tensor_root(input)->name);
            refuse(g->graph, g->node, what);
        }
        if (g->dx[k])
            accumulate(g->graph, input, g->dx[k]);
    }
}

static void differentiate(struct tfm_graph *graph, const struct tfm_node *node,
                          const unsigned char *wanted)
{
    struct tfm__gradient g = {.graph = graph, .node = node};
    struct tfm__graph_scope *scope = graph->scope;
    int any_output = 0, any_input = 0;

    for (uint32_t k = 0; k < node->n_outputs; k++) {
        g.dy[k] = gradient_of(graph, node->outputs[k]);
        any_output |= g.dy[k] != NULL;
    }
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        g.wanted[k] = node->inputs[k] && wanted[tfm__tensor_root(node->inputs[k])->id];
        any_input |= g.wanted[k];
    }
    if (!any_output || !any_input)
        return;
    const struct tfm__rule *rule = tfm__op_rule(node->op);
    if (!rule->gradient) {
        refuse(graph, node, "");
        return;
    }
    graph->scope = (struct tfm__graph_scope *)node->scope;
    rule->gradient(&g);
    take(&g);
    graph->scope = scope;
}

static int check_seed(struct tfm_graph *graph, uint32_t i, const struct tfm_tensor *output,
                      const struct tfm_tensor *gradient)
{
    struct tfm__shape_text a, b;

    if (!output || !gradient) /* passed on */
        return tfm_error_set(&graph->error, TFM_STATUS_INVALID_ARGUMENT,
                             "backward: output %u or its gradient is missing", i) == TFM_STATUS_OK;
    if (output->id >= graph->n_tensors || graph->tensors[output->id] != output ||
        gradient->id >= graph->n_tensors || graph->tensors[gradient->id] != gradient)
        return tfm_error_set(&graph->error, TFM_STATUS_INVALID_ARGUMENT,
                             "backward: output %u or its gradient belongs to another graph",
                             i) == TFM_STATUS_OK;
    if (output->extent == TFM_EXTENT_FIXED || !is_float(output) ||
        gradient->dtype != output->dtype || gradient->extent != output->extent ||
        gradient->rank != output->rank ||
        memcmp(gradient->shape, output->shape, sizeof output->shape) != 0)
        return tfm_error_set(&graph->error, TFM_STATUS_SHAPE,
                             "backward: output \"%s\" %s %s and its gradient \"%s\" %s %s must be "
                             "activations of one shape and float dtype",
                             output->name, tfm_dtype_name(output->dtype),
                             tfm__shape_format(output, &a), gradient->name,
                             tfm_dtype_name(gradient->dtype),
                             tfm__shape_format(gradient, &b)) == TFM_STATUS_OK;
    return 1;
}

enum tfm_status tfm_graph_backward(struct tfm_graph *graph, uint32_t n,
                                   struct tfm_tensor *const *outputs,
                                   struct tfm_tensor *const *gradients, struct tfm_error *err)
{
    const uint32_t n_nodes = graph->n_nodes;
    unsigned char *wanted = NULL;

    tfm_error_clear(err);
    int good = tfm__graph_open(graph, "backward");
    for (uint32_t i = 0; good && i < n; i++)
        good = check_seed(graph, i, outputs[i], gradients[i]);
    if (good && !(wanted = tfm__alloc(graph->n_tensors + 1)))
        tfm_error_set(&graph->error, TFM_STATUS_NOMEM, "backward: out of memory");
    if (wanted) {
        graph->backwards++;
        mark_wanted(graph, n_nodes, wanted);
        for (uint32_t i = 0; i < n; i++)
            accumulate(graph, outputs[i], gradients[i]);
        for (uint32_t k = n_nodes; k-- > 0 && graph->error.status == TFM_STATUS_OK;)
            differentiate(graph, graph->nodes[k], wanted);
    }
    tfm__free(wanted);
    return tfm_graph_check(graph, err);
}
