/* SPDX-License-Identifier: MIT
 * The check of indices: what passes here is read by kernels without a look. */
#include "lib/core/values.h"

#include <string.h>

#include "lib/core/graph.h"
#include "lib/core/rule.h"

enum tfm_status tfm__values_check(const struct tfm_tensor *tensor, const void *values, int64_t n,
                                  struct tfm_error *err)
{
    const unsigned char *bytes = values;

    if (tensor->dtype != TFM_DTYPE_I32 || !tensor->limit)
        return TFM_STATUS_OK;
    for (int64_t i = 0; i < n; i++) {
        int32_t value;
        memcpy(&value, bytes + (size_t)i * sizeof value, sizeof value);
        if ((value >= 0 && value < tensor->limit) || (value == -1 && tensor->may_be_none))
            continue;
        if (value >= 0 && tensor->is_position)
            return tfm_error_set(err, TFM_STATUS_CONTEXT_FULL,
                                 "context full: position %d, the table ends at %lld (\"%s\", value "
                                 "%lld)",
                                 (int)value, (long long)tensor->limit, tensor->name, (long long)i);
        return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE,
                             "\"%s\": value %d at %lld is not in [%d, %lld)", tensor->name,
                             (int)value, (long long)i, tensor->may_be_none ? -1 : 0,
                             (long long)tensor->limit);
    }
    return TFM_STATUS_OK;
}

/* The node that the limit came from: it indexes something with as many rows. */
static const struct tfm_node *reader(const struct tfm_graph *graph, const struct tfm_tensor *tensor)
{
    const struct tfm_node *first = NULL;

    for (uint32_t i = 0; i < tfm_graph_node_count(graph); i++) {
        const struct tfm_node *node = tfm_graph_node(graph, i);
        int reads = 0, has_rows = 0;
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            const struct tfm_tensor *input = node->inputs[k];
            reads |= input && tfm__tensor_root(input) == tensor;
            has_rows |= input && input->extent == TFM_EXTENT_FIXED && input != tensor &&
                        input->shape[0] == tensor->limit;
        }
        if (reads && has_rows)
            return node;
        if (reads && !first)
            first = node;
    }
    return first;
}

enum tfm_status tfm__values_check_for(const struct tfm_graph *graph,
                                      const struct tfm_tensor *tensor, const void *values,
                                      int64_t n, struct tfm_error *err)
{
    const enum tfm_status status = tfm__values_check(tensor, values, n, err);
    const struct tfm_node *node = status == TFM_STATUS_OK ? NULL : reader(graph, tensor);
    char list[400];

    if (!node)
        return status;
    tfm__operands_format(node, NULL, list, sizeof list);
    tfm_error_prefix(err, "%s: %s of %s", node->scope ? node->scope->name : "graph",
                     tfm_op_name(node->op), list);
    return status;
}
