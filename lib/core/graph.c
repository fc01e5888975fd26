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

/* Grows an array of pointers by one. */
static int reserve(void ***array, uint32_t n, uint32_t *room)
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

/* Copies `model` into the graph under `name`. */
static struct tfm_tensor *add_tensor(struct tfm_graph *graph, const struct tfm_tensor *model,
                                     const char *name)
{
    void **array = (void **)graph->tensors;
    struct tfm_tensor *tensor = NULL;
    char *copy = NULL;

    if (!reserve(&array, graph->n_tensors, &graph->tensor_room)) {
        graph->tensors = (struct tfm_tensor **)array;
        tensor = tfm__alloc(sizeof *tensor);
        copy = tfm__strdup(name);
    }
    if (!tensor || !copy) {
        tfm__free(tensor);
        tfm__free(copy);
        tfm_error_set(&graph->error, TFM_STATUS_NOMEM, "graph: out of memory at tensor \"%s\"",
                      name);
        return NULL;
    }
    *tensor = *model;
    tensor->id = graph->n_tensors;
    tensor->name = copy;
    graph->tensors[graph->n_tensors++] = tensor;
    return tensor;
}

int tfm__tensor_bytes(const struct tfm_tensor *tensor, int64_t outer, size_t *bytes)
{
    const struct tfm_dtype_info *info = tfm_dtype_info(tensor->dtype);
    size_t n = (size_t)outer;

    for (int i = 1; i < tensor->rank; i++) {
        if (tfm__mul_size(n, (size_t)tensor->shape[i], &n))
            return 1;
    }
    /* rows are whole blocks, so the total is too */
    return tfm__mul_size(n / info->block, info->bytes, bytes);
}

int64_t tfm__tensor_outer(const struct tfm_tensor *tensor, const struct tfm_capacity *capacity)
{
    if (tensor->extent == TFM_EXTENT_ROWS)
        return capacity->rows;
    return tensor->extent == TFM_EXTENT_OUT_ROWS ? capacity->out_rows : tensor->shape[0];
}

const char *tfm__shape_format(const struct tfm_tensor *tensor, struct tfm__shape_text *buffer)
{
    size_t used = 0;

    buffer->text[used++] = '[';
    for (int i = 0; i < tensor->rank && i < TFM_MAX_RANK; i++) {
        const char *comma = i ? ", " : "";
        char *end = buffer->text + used;
        const size_t room = sizeof buffer->text - used;
        int n;
        if (i == 0 && tensor->extent != TFM_EXTENT_FIXED)
            n = snprintf(end, room, "%s", tensor->extent == TFM_EXTENT_ROWS ? "N" : "R");
        else
            n = snprintf(end, room, "%s%lld", comma, (long long)tensor->shape[i]);
        used += (size_t)n;
    }
    snprintf(buffer->text + used, sizeof buffer->text - used, "]");
    return buffer->text;
}

static int valid_shape(struct tfm_graph *graph, const struct tfm_tensor *tensor, const char *name)
{
    const struct tfm_dtype_info *info = tfm_dtype_info(tensor->dtype);
    struct tfm__shape_text shape;
    size_t bytes;

    if (!info) {
        tfm_error_set(&graph->error, TFM_STATUS_DTYPE, "tensor \"%s\": %d is no dtype", name,
                      (int)tensor->dtype);
        return 0;
    }
    if (tensor->rank < 1 || tensor->rank > TFM_MAX_RANK) {
        tfm_error_set(&graph->error, TFM_STATUS_SHAPE, "tensor \"%s\": rank %d is not in 1..%d",
                      name, tensor->rank, TFM_MAX_RANK);
        return 0;
    }
    for (int i = tensor->extent == TFM_EXTENT_FIXED ? 0 : 1; i < tensor->rank; i++) {
        if (tensor->shape[i] < 1) {
            tfm_error_set(&graph->error, TFM_STATUS_SHAPE,
                          "tensor \"%s\": extent %d of %s is not positive", name, i,
                          tfm__shape_format(tensor, &shape));
            return 0;
        }
    }
    if (info->block > 1 &&
        (tensor->rank < 2 || tensor->shape[tensor->rank - 1] % info->block != 0)) {
        tfm_error_set(&graph->error, TFM_STATUS_SHAPE,
                      "tensor \"%s\": rows of %s hold whole blocks of %u values, but its shape is "
                      "%s",
                      name, info->name, info->block, tfm__shape_format(tensor, &shape));
        return 0;
    }
    /* with 2^31 rows at most, so that no later product of a valid plan can overflow */
    const int64_t outer = tensor->extent == TFM_EXTENT_FIXED ? tensor->shape[0] : INT32_MAX;
    if (tfm__tensor_bytes(tensor, outer, &bytes) || bytes > SIZE_MAX / 4) {
        tfm_error_set(&graph->error, TFM_STATUS_SHAPE, "tensor \"%s\": %s is too large", name,
                      tfm__shape_format(tensor, &shape));
        return 0;
    }
    return 1;
}

const struct tfm_tensor *tfm_graph_find(const struct tfm_graph *graph, const char *name)
{
    for (uint32_t i = 0; i < graph->n_tensors; i++) {
        if (strcmp(graph->tensors[i]->name, name) == 0)
            return graph->tensors[i];
    }
    return NULL;
}

static struct tfm_tensor *declare(struct tfm_graph *graph, enum tfm_tensor_kind kind,
                                  enum tfm_extent extent, const char *name, enum tfm_dtype dtype,
                                  int rank, const int64_t *shape)
{
    struct tfm_tensor model = {.kind = kind, .dtype = dtype, .extent = extent, .rank = rank};

    if (!tfm__graph_open(graph, name))
        return NULL;
    for (int i = 0; i < rank && i < TFM_MAX_RANK; i++)
        model.shape[i] = i == 0 && extent != TFM_EXTENT_FIXED ? 0 : shape[i];
    if (!valid_shape(graph, &model, name))
        return NULL;
    struct tfm_tensor *known = (struct tfm_tensor *)tfm_graph_find(graph, name);
    if (!known)
        return add_tensor(graph, &model, name);
    if (known->kind == kind && known->dtype == dtype && known->rank == rank &&
        memcmp(known->shape, model.shape, sizeof model.shape) == 0)
        return known;
    struct tfm__shape_text a, b;
    tfm_error_set(&graph->error, TFM_STATUS_INVALID_ARGUMENT,
                  "tensor \"%s\" is declared twice: %s %s and %s %s", name,
                  tfm_dtype_name(known->dtype), tfm__shape_format(known, &a), tfm_dtype_name(dtype),
                  tfm__shape_format(&model, &b));
    return NULL;
}

struct tfm_tensor *tfm_graph_parameter(struct tfm_graph *graph, const char *name,
                                       enum tfm_dtype dtype, int rank, const int64_t *shape)
{
    return declare(graph, TFM_TENSOR_PARAMETER, TFM_EXTENT_FIXED, name, dtype, rank, shape);
}

struct tfm_tensor *tfm_graph_buffer(struct tfm_graph *graph, const char *name, enum tfm_dtype dtype,
                                    int rank, const int64_t *shape)
{
    return declare(graph, TFM_TENSOR_BUFFER, TFM_EXTENT_FIXED, name, dtype, rank, shape);
}

struct tfm_tensor *tfm_graph_input(struct tfm_graph *graph, const char *name, enum tfm_dtype dtype,
                                   int rank, const int64_t *shape)
{
    return declare(graph, TFM_TENSOR_INPUT, TFM_EXTENT_ROWS, name, dtype, rank, shape);
}

struct tfm_tensor *tfm_graph_state(struct tfm_graph *graph, const char *name, enum tfm_dtype dtype,
                                   int rank, const int64_t *shape)
{
    return declare(graph, TFM_TENSOR_STATE, TFM_EXTENT_FIXED, name, dtype, rank, shape);
}

struct tfm_tensor *tfm_graph_train(struct tfm_graph *graph, struct tfm_tensor *parameter)
{
    if (!parameter || !tfm__graph_open(graph, parameter->name))
        return NULL;
    const struct tfm_tensor *root = tfm__tensor_root(parameter);
    const struct tfm_dtype_info *info = tfm_dtype_info(root->dtype);
    if (root->kind != TFM_TENSOR_PARAMETER || info->dtype_class != TFM_DTYPE_FLOAT) {
        struct tfm__shape_text shape;
        tfm_error_set(
            &graph->error, TFM_STATUS_INVALID_ARGUMENT,
            "train \"%s\": only a parameter of a float dtype can be trained, this is %s %s",
            root->name, info->name, tfm__shape_format(root, &shape));
        return NULL;
    }
    for (uint32_t i = 0; i < graph->n_tensors; i++) {
        if (tfm__tensor_root(graph->tensors[i]) == root)
            graph->tensors[i]->is_trainable = 1;
    }
    return parameter;
}

struct tfm_tensor *tfm_graph_output(struct tfm_graph *graph, struct tfm_tensor *tensor,
                                    const char *name)
{
    if (!tensor || !tfm__graph_open(graph, name))
        return NULL;
    if (tensor->kind != TFM_TENSOR_INTERMEDIATE || tensor->view_of) {
        tfm_error_set(&graph->error, TFM_STATUS_INVALID_ARGUMENT,
                      "output \"%s\": tensor \"%s\" is not the result of an op", name,
                      tensor->name);
        return NULL;
    }
    if (tfm_graph_find(graph, name)) {
        tfm_error_set(&graph->error, TFM_STATUS_INVALID_ARGUMENT,
                      "output \"%s\": a tensor of that name is already there", name);
        return NULL;
    }
    struct tfm__graph_output *output = tfm__alloc(sizeof *output);
    char *copy = tfm__strdup(name);
    if (!copy || !output) {
        tfm__free(output);
        tfm__free(copy);
        tfm_error_set(&graph->error, TFM_STATUS_NOMEM, "output \"%s\": out of memory", name);
        return NULL;
    }
    *output = (struct tfm__graph_output){tensor, (char *)tensor->name, graph->outputs};
    graph->outputs = output;
    tensor->name = copy;
    tensor->kind = TFM_TENSOR_OUTPUT;
    return tensor;
}

void tfm__graph_outputs_undo(struct tfm_graph *graph, const void *end)
{
    while (graph->outputs && (const void *)graph->outputs != end) {
        struct tfm__graph_output *output = graph->outputs;
        graph->outputs = output->next;
        tfm__free((char *)output->tensor->name);
        output->tensor->name = output->name;
        output->tensor->kind = TFM_TENSOR_INTERMEDIATE;
        tfm__free(output);
    }
}

struct tfm_tensor *tfm_graph_reshape(struct tfm_graph *graph, struct tfm_tensor *tensor, int rank,
                                     const int64_t *shape)
{
    if (!tensor || !tfm__graph_open(graph, tensor->name))
        return NULL;
    struct tfm_tensor model = *tensor;
    struct tfm__shape_text a, b;
    model.rank = rank;
    model.view_of = tfm__tensor_root(tensor);
    memset(model.shape, 0, sizeof model.shape);
    for (int i = 0; i < rank && i < TFM_MAX_RANK; i++)
        model.shape[i] = i == 0 && model.extent != TFM_EXTENT_FIXED ? 0 : shape[i];
    if (!valid_shape(graph, &model, tensor->name))
        return NULL;
    if (model.shape[0] != tensor->shape[0] ||
        tfm_tensor_row_elements(&model) != tfm_tensor_row_elements(tensor)) {
        tfm_error_set(&graph->error, TFM_STATUS_SHAPE,
                      "reshape of \"%s\": %s does not hold the elements of %s", tensor->name,
                      tfm__shape_format(&model, &a), tfm__shape_format(tensor, &b));
        return NULL;
    }
    char name[256];
    snprintf(name, sizeof name, "%s (view %u)", tensor->name, graph->n_tensors);
    return add_tensor(graph, &model, name);
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

void tfm__tensor_limit(const struct tfm_tensor *tensor, int64_t limit)
{
    struct tfm_tensor *root = (struct tfm_tensor *)tfm__tensor_root(tensor);
    if (root->limit == 0 || limit < root->limit)
        root->limit = limit;
    root->may_be_none = 0;
}

void tfm__tensor_limit_or_none(const struct tfm_tensor *tensor, int64_t limit)
{
    struct tfm_tensor *root = (struct tfm_tensor *)tfm__tensor_root(tensor);
    const int none = root->limit == 0 || root->may_be_none; /* every reader must take it */

    tfm__tensor_limit(root, limit);
    root->may_be_none = none;
}

void tfm__tensor_positions(const struct tfm_tensor *tensor, int64_t limit)
{
    ((struct tfm_tensor *)tfm__tensor_root(tensor))->is_position = 1;
    tfm__tensor_limit(tensor, limit);
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

/* Copies a node whose outputs have been inferred into the graph, and them. */
static int add_node(struct tfm_graph *graph, struct tfm_node *model,
                    const struct tfm_tensor *outputs)
{
    const char *op = tfm_op_name(model->op), *layer = model->scope ? model->scope->name : "";
    void **array = (void **)graph->nodes;
    struct tfm_node *node = NULL;

    if (!reserve(&array, graph->n_nodes, &graph->node_room)) {
        graph->nodes = (struct tfm_node **)array;
        node = tfm__alloc(sizeof *node);
    }
    if (!node) {
        tfm_error_set(&graph->error, TFM_STATUS_NOMEM, "graph: out of memory at %s", op);
        return 0;
    }
    for (uint32_t i = 0; i < model->n_outputs; i++) {
        char name[256];
        snprintf(name, sizeof name, "%s%s%s:%u.%u", layer, *layer ? "." : "", op, model->id, i);
        model->outputs[i] =
            valid_shape(graph, &outputs[i], name) ? add_tensor(graph, &outputs[i], name) : NULL;
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
