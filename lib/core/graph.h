/* SPDX-License-Identifier: MIT
 * The graph as the core sees it. */
#ifndef TFM__CORE_GRAPH_H
#define TFM__CORE_GRAPH_H

#include "lib/core/rule.h"

/* One more holder; tfm_graph_destroy gives one up. Graphs that are held by plans are frozen. */
void tfm__graph_retain(struct tfm_graph *graph);
/* Builders fail from now on. */
void tfm__graph_freeze(struct tfm_graph *graph);

/* The tensor whose bytes these are: itself, or what it is a view of. */
static inline const struct tfm_tensor *tfm__tensor_root(const struct tfm_tensor *tensor)
{
    return tensor->view_of ? tensor->view_of : tensor;
}

/* Bytes of one outermost slice, and of the whole when the outermost extent is `outer`. The graph
 * checked that neither overflows for FIXED; returns 1 on overflow otherwise. */
int tfm__tensor_bytes(const struct tfm_tensor *tensor, int64_t outer, size_t *bytes);

/* Largest outermost extent under a capacity. */
int64_t tfm__tensor_outer(const struct tfm_tensor *tensor, const struct tfm_capacity *capacity);

#endif
