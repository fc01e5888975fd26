/* SPDX-License-Identifier: MIT
 * The graph: an arena of tensors, nodes and scopes, with a sticky first error. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/core/alloc.h"
#include "lib/core/checked.h"
#include "lib/core/graph.h"
#include "lib/core/op.h"

enum tfm_status tfm_graph_create(struct tfm_graph **graph, struct tfm_error *err)
{
    struct tfm_graph *g;

    tfm_error_clear(err);
    g = tfm__alloc(sizeof *g);
    if (!g)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "graph: out of memory");
    atomic_init(&g->holders, 1);
    *graph = g;
    return TFM_STATUS_OK;
}

void tfm__graph_retain(struct tfm_graph *graph)
{
    atomic_fetch_add(&graph->holders, 1);
}

void tfm_graph_destroy(struct tfm_graph *graph)
{
    if (!graph || atomic_fetch_sub(&graph->holders, 1) != 1)
        return;
    tfm__graph_outputs_undo(graph, NULL);
    for (uint32_t i = 0; i < graph->n_tensors; i++) {
        tfm__free((char *)graph->tensors[i]->name);
        tfm__free(graph->tensors[i]);
    }
    for (uint32_t i = 0; i < graph->n_nodes; i++)
        tfm__free(graph->nodes[i]);
    tfm__graph_scopes_free(graph, NULL);
    tfm__graph_makers_free(graph, NULL);
    tfm__free(graph->gradients);
    tfm__free(graph->tensors);
    tfm__free(graph->nodes);
    tfm__free(graph);
}

void tfm__graph_freeze(struct tfm_graph *graph)
{
    atomic_store(&graph->frozen, 1);
}

enum tfm_status tfm_graph_check(const struct tfm_graph *graph, struct tfm_error *err)
{
    tfm_error_clear(err);
    if (graph->error.status != TFM_STATUS_OK)
        tfm_error_set(err, graph->error.status, "%s", graph->error.text);
    return graph->error.status;
}

struct tfm_tensor *tfm_graph_refuse(struct tfm_graph *graph, enum tfm_status status,
                                    const char *format, ...)
{
    const struct tfm_scope *scope = graph->scope ? &graph->scope->public : NULL;
    char text[400];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (tfm__graph_open(graph, text))
        tfm_error_set(&graph->error, status, "%s%s%s", scope ? scope->name : "", scope ? ": " : "",
                      text);
    return NULL;
}

int tfm__graph_open(struct tfm_graph *graph, const char *what)
{
    if (atomic_load(&graph->frozen))
        tfm_error_set(&graph->error, TFM_STATUS_BUSY,
                      "%s: the graph was compiled and can no longer be changed; build another one",
                      what);
    return graph->error.status == TFM_STATUS_OK;
}

int tfm__graph_reserve(void ***array, uint32_t n, uint32_t *room)
{
    if (n < *room)
        return 0;
    const uint32_t larger = *room ? *room * 2 : 64;
    void **grown = tfm__alloc_array(larger, sizeof *grown);
    if (!grown)
        return 1;
    if (n)
        memcpy(grown, *array, n * sizeof *grown);
    tfm__free(*array);
    *array = grown;
    *room = larger;
    return 0;
}

void tfm_graph_scope_push(struct tfm_graph *graph, const char *kind, const char *name)
{
    if (!tfm__graph_open(graph, name))
        return;
    struct tfm__graph_scope *scope = tfm__alloc(sizeof *scope);
    if (scope) {
        scope->public.kind = tfm__strdup(kind);
        scope->public.name = tfm__strdup(name);
        scope->public.parent = graph->scope ? &graph->scope->public : NULL;
        scope->all = graph->scopes;
        graph->scopes = scope;
        graph->scope = scope;
    }
    if (!scope || !scope->public.kind || !scope->public.name)
        tfm_error_set(&graph->error, TFM_STATUS_NOMEM, "graph: out of memory at \"%s\"", name);
}

void tfm__graph_scopes_free(struct tfm_graph *graph, const void *end)
{
    while (graph->scopes && (const void *)graph->scopes != end) {
        struct tfm__graph_scope *next = graph->scopes->all;
        tfm__free((char *)graph->scopes->public.kind);
        tfm__free((char *)graph->scopes->public.name);
        tfm__free(graph->scopes);
        graph->scopes = next;
    }
}

void tfm_graph_scope_pop(struct tfm_graph *graph)
{
    if (graph->scope)
        graph->scope = (struct tfm__graph_scope *)graph->scope->public.parent;
}

/* Arity and NULLs. 0 = go on, 1 = stop (an error, or a NULL passed on). */
static int refuse_inputs(struct tfm_graph *graph, const struct tfm_op_info *info,
                         struct tfm_tensor *const *inputs, uint32_t n)
{
    if (n < info->inputs_min || n > info->inputs_max) {
        tfm_error_set(&graph->error, TFM_STATUS_INVALID_ARGUMENT,
                      "%s: %u inputs, but it takes %u..%u", info->name, n, info->inputs_min,
                      info->inputs_max);
        return 1;
    }
    for (uint32_t i = 0; i < info->inputs_min; i++) {
        if (!inputs[i]) {
            tfm_error_set(&graph->error, TFM_STATUS_INVALID_ARGUMENT, "%s: input %u is missing",
                          info->name, i);
            return 1;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        if (inputs[i] &&
            (inputs[i]->id >= graph->n_tensors || graph->tensors[inputs[i]->id] != inputs[i])) {
            tfm_error_set(&graph->error, TFM_STATUS_INVALID_ARGUMENT,
                          "%s: input %u belongs to another graph", info->name, i);
            return 1;
        }
    }
    return 0;
}

static void output_name(const struct tfm_node *node, uint32_t i, char *name, size_t size)
{
    const char *layer = node->scope ? node->scope->name : "";

    snprintf(name, size, "%s%s%s:%u.%u", layer, *layer ? "." : "", tfm_op_name(node->op), node->id,
             i);
}

/* Copies a node whose outputs have been inferred into the graph, and them. */
static int add_node(struct tfm_graph *graph, struct tfm_node *model,
                    const struct tfm_tensor *outputs)
{
    const char *op = tfm_op_name(model->op);
    void **array = (void **)graph->nodes;
    struct tfm_node *node = NULL;

    if (!tfm__graph_reserve(&array, graph->n_nodes, &graph->node_room)) {
        graph->nodes = (struct tfm_node **)array;
        node = tfm__alloc(sizeof *node);
    }
    if (!node) {
        tfm_error_set(&graph->error, TFM_STATUS_NOMEM, "graph: out of memory at %s", op);
        return 0;
    }
    for (uint32_t i = 0; i < model->n_outputs; i++) {
        char name[256];
        output_name(model, i, name, sizeof name);
        model->outputs[i] = tfm__graph_valid_tensor(graph, &outputs[i], name)
                                ? tfm__graph_add_tensor(graph, &outputs[i], name)
                                : NULL;
        if (!model->outputs[i]) {
            tfm__free(node);
            return 0;
        }
    }
    *node = *model;
    graph->nodes[graph->n_nodes++] = node;
    return 1;
}

int tfm__graph_append_node(struct tfm_graph *graph, enum tfm_op op,
                           struct tfm_tensor *const *inputs, uint32_t n_inputs,
                           const struct tfm_attrs *attrs, struct tfm_tensor **outputs)
{
    const struct tfm_op_info *info = tfm_op_info(op);
    const struct tfm_scope *scope = graph->scope ? &graph->scope->public : NULL;
    struct tfm_tensor inferred[TFM_MAX_OUTPUTS] = {0};
    struct tfm_node model = {.op = op, .n_inputs = n_inputs, .scope = scope};
    struct tfm_error err = {0};

    for (uint32_t i = 0; i < TFM_MAX_OUTPUTS; i++)
        outputs[i] = NULL;
    if (!tfm__graph_open(graph, info->name) || refuse_inputs(graph, info, inputs, n_inputs))
        return 0;
    model.id = graph->n_nodes;
    model.n_outputs = info->outputs;
    for (uint32_t i = 0; i < n_inputs; i++)
        model.inputs[i] = inputs[i];
    while (model.n_inputs > info->inputs_min && !model.inputs[model.n_inputs - 1])
        model.n_inputs--; /* trailing optional inputs that are not there */
    if (attrs)
        model.attrs = *attrs;
    for (uint32_t i = 0; i < info->outputs; i++)
        inferred[i].kind = TFM_TENSOR_INTERMEDIATE;
    if (tfm__op_rule(op)->infer(&model, inferred, &err) != TFM_STATUS_OK) {
        tfm_error_set(&graph->error, err.status, "%s%s%s", scope ? scope->name : "",
                      scope ? ": " : "", err.text);
        return 0;
    }
    if (!add_node(graph, &model, inferred))
        return 0;
    for (uint32_t i = 0; i < model.n_outputs; i++)
        outputs[i] = (struct tfm_tensor *)model.outputs[i];
    return 1;
}

struct tfm_tensor *tfm__graph_more_output(struct tfm_graph *graph, const struct tfm_node *node,
                                          uint32_t output)
{
    struct tfm_node *own = graph->nodes[node->id], model = *node;
    struct tfm_tensor inferred[TFM_MAX_OUTPUTS] = {0};
    struct tfm_error err = {0};
    char name[256];

    if (output < node->n_outputs)
        return (struct tfm_tensor *)node->outputs[output];
    if (!tfm__graph_open(graph, tfm_op_name(node->op)))
        return NULL;
    model.attrs.extra_outputs++;
    model.n_outputs = tfm_op_info(node->op)->outputs;
    for (uint32_t i = 0; i < model.n_outputs; i++)
        inferred[i].kind = TFM_TENSOR_INTERMEDIATE;
    if (tfm__op_rule(node->op)->infer(&model, inferred, &err) != TFM_STATUS_OK ||
        model.n_outputs <= output) {
        tfm_error_set(&graph->error, err.status ? err.status : TFM_STATUS_INTERNAL, "%s: %s",
                      tfm__layer_name(node), err.text);
        return NULL;
    }
    output_name(node, output, name, sizeof name);
    struct tfm_tensor *made = tfm__graph_valid_tensor(graph, &inferred[output], name)
                                  ? tfm__graph_add_tensor(graph, &inferred[output], name)
                                  : NULL;
    if (made) {
        own->attrs = model.attrs;
        own->outputs[own->n_outputs++] = made;
    }
    return made;
}

struct tfm_tensor *tfm__graph_append(struct tfm_graph *graph, enum tfm_op op,
                                     struct tfm_tensor *const *inputs, uint32_t n_inputs,
                                     const struct tfm_attrs *attrs)
{
    struct tfm_tensor *outputs[TFM_MAX_OUTPUTS];

    (void)tfm__graph_append_node(graph, op, inputs, n_inputs, attrs, outputs);
    return outputs[0];
}

uint32_t tfm_graph_node_count(const struct tfm_graph *graph)
{
    return graph->n_nodes;
}

const struct tfm_node *tfm_graph_node(const struct tfm_graph *graph, uint32_t index)
{
    return index < graph->n_nodes ? graph->nodes[index] : NULL;
}

uint32_t tfm_graph_tensor_count(const struct tfm_graph *graph)
{
    return graph->n_tensors;
}

const struct tfm_tensor *tfm_graph_tensor(const struct tfm_graph *graph, uint32_t index)
{
    return index < graph->n_tensors ? graph->tensors[index] : NULL;
}
