/* SPDX-License-Identifier: MIT
 * The tensors of a graph: how they are declared, trained, viewed and made outputs, and what their values may be. */
#include <stdio.h>
#include <string.h>

#include "lib/core/alloc.h"
#include "lib/core/checked.h"
#include "lib/core/graph.h"

struct tfm_tensor *tfm__graph_add_tensor(struct tfm_graph *graph, const struct tfm_tensor *model,
                                         const char *name)
{
    void **array = (void **)graph->tensors;
    struct tfm_tensor *tensor = NULL;
    char *copy = NULL;

    if (!tfm__graph_reserve(&array, graph->n_tensors, &graph->tensor_room)) {
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

int tfm__graph_valid_tensor(struct tfm_graph *graph, const struct tfm_tensor *tensor,
                            const char *name)
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
    if (!tfm__graph_valid_tensor(graph, &model, name))
        return NULL;
    struct tfm_tensor *known = (struct tfm_tensor *)tfm_graph_find(graph, name);
    if (!known)
        return tfm__graph_add_tensor(graph, &model, name);
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
    if (!tfm__graph_valid_tensor(graph, &model, tensor->name))
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
    return tfm__graph_add_tensor(graph, &model, name);
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
