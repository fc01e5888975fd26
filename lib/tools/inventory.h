/* SPDX-License-Identifier: MIT
 * What the layers of a graph registered: parameters, buffers, caches, and how much of it is what. */
#ifndef TFM__TOOLS_INVENTORY_H
#define TFM__TOOLS_INVENTORY_H

#include <stddef.h>
#include <stdint.h>

#include <tfm/graph.h>

struct tfm__inventory_row {
    const struct tfm_tensor *tensor;
    const char *layer; /* kind of the layer that reads it first: "linear" */
    int linear_weight; /* the weight of a linear that reads it first */
    uint64_t values, bytes;
};

/* Parameters of one kind of layer. */
struct tfm__inventory_group {
    const char *layer;
    uint64_t tensors, values;
};

enum { TFM__INVENTORY_GROUPS = 32 };

struct tfm__inventory {
    struct tfm__inventory_row *rows; /* parameters, then buffers, then states */
    size_t n_rows, n_parameters, n_buffers, n_states;
    struct tfm__inventory_group groups[TFM__INVENTORY_GROUPS];
    size_t n_groups;
    uint64_t values, bytes; /* of parameters */
    uint64_t buffer_bytes, state_bytes;
    uint64_t linear_values;           /* weights that a linear reads first */
    uint64_t linear_values_with_tied; /* and those that something else reads before it */
};

/* Returns an exit code after it has said what is wrong. The graph must outlive the inventory. */
int tfm__inventory_make(const struct tfm_graph *graph, struct tfm__inventory *inventory);
void tfm__inventory_free(struct tfm__inventory *inventory);

#endif
