/* SPDX-License-Identifier: MIT
 * Collects what the layers of a graph registered, from the graph alone: no weights are made. */
#include "lib/tools/inventory.h"

#include <stdlib.h>
#include <string.h>

#include "lib/core/checked.h"
#include "lib/tools/message.h"

/* The first use of a tensor, and whether any linear reads it as its weight. */
static void find_use(const struct tfm_graph *graph, const struct tfm_tensor *tensor,
                     struct tfm__inventory_row *row, int *any_linear)
{
    for (uint32_t n = 0; n < tfm_graph_node_count(graph); n++) {
        const struct tfm_node *node = tfm_graph_node(graph, n);
        for (uint32_t i = 0; i < node->n_inputs; i++) {
            if (node->inputs[i] != tensor)
                continue;
            const int weight = node->op == TFM_OP_LINEAR && i == 1;
            *any_linear |= weight;
            if (!*row->layer) {
                row->layer = node->scope ? node->scope->kind : tfm_op_name(node->op);
                row->linear_weight = weight;
            }
        }
    }
}

static int count(const struct tfm_tensor *tensor, struct tfm__inventory_row *row)
{
    const struct tfm_dtype_info *info = tfm_dtype_info(tensor->dtype);
    size_t values = 1, bytes;

    for (int32_t i = 0; i < tensor->rank; i++)
        if (tfm__mul_size(values, (size_t)tensor->shape[i], &values))
            return 1;
    if (tfm__mul_size(values / info->block, info->bytes, &bytes))
        return 1;
    row->values = values;
    row->bytes = bytes;
    return 0;
}

static int add(uint64_t *sum, uint64_t more)
{
    return __builtin_add_overflow(*sum, more, sum);
}

static int add_to_group(struct tfm__inventory *inventory, const struct tfm__inventory_row *row)
{
    size_t i = 0;

    while (i < inventory->n_groups && strcmp(inventory->groups[i].layer, row->layer) != 0)
        i++;
    if (i == TFM__INVENTORY_GROUPS)
        return 1;
    if (i == inventory->n_groups)
        inventory->groups[inventory->n_groups++].layer = row->layer;
    inventory->groups[i].tensors++;
    return add(&inventory->groups[i].values, row->values);
}

/* Appends every tensor of a kind; returns 1 when a sum overflows. */
static int append(const struct tfm_graph *graph, enum tfm_tensor_kind kind,
                  struct tfm__inventory *inventory, size_t *n)
{
    for (uint32_t t = 0; t < tfm_graph_tensor_count(graph); t++) {
        const struct tfm_tensor *tensor = tfm_graph_tensor(graph, t);
        struct tfm__inventory_row *row = &inventory->rows[inventory->n_rows];
        int any_linear = 0, overflow;

        if (tensor->kind != kind || tensor->view_of)
            continue;
        *row = (struct tfm__inventory_row){.tensor = tensor, .layer = ""};
        find_use(graph, tensor, row, &any_linear);
        overflow = count(tensor, row);
        if (kind == TFM_TENSOR_PARAMETER) {
            overflow |= add(&inventory->values, row->values);
            overflow |= add(&inventory->bytes, row->bytes);
            overflow |= add_to_group(inventory, row);
            inventory->linear_values += row->linear_weight ? row->values : 0;
            inventory->linear_values_with_tied += any_linear ? row->values : 0;
        } else {
            overflow |=
                add(kind == TFM_TENSOR_BUFFER ? &inventory->buffer_bytes : &inventory->state_bytes,
                    row->bytes);
        }
        if (overflow)
            return 1;
        inventory->n_rows++;
        ++*n;
    }
    return 0;
}

int tfm__inventory_make(const struct tfm_graph *graph, struct tfm__inventory *inventory)
{
    *inventory = (struct tfm__inventory){0};
    inventory->rows = calloc((size_t)tfm_graph_tensor_count(graph) + 1, sizeof *inventory->rows);
    if (!inventory->rows)
        return tfm__failed("out of memory");
    if (append(graph, TFM_TENSOR_PARAMETER, inventory, &inventory->n_parameters) ||
        append(graph, TFM_TENSOR_BUFFER, inventory, &inventory->n_buffers) ||
        append(graph, TFM_TENSOR_STATE, inventory, &inventory->n_states)) {
        tfm__inventory_free(inventory);
        return tfm__failed("the model is too large to count");
    }
    return TFM__EXIT_OK;
}

void tfm__inventory_free(struct tfm__inventory *inventory)
{
    free(inventory->rows);
    inventory->rows = NULL;
}
