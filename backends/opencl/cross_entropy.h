/* SPDX-License-Identifier: MIT
 * What cross_entropy and its gradient share on opencl: logits by chunks of rows and classes, and which two nodes are
 * computed together. */
#ifndef TFM_OPENCL_CROSS_ENTROPY_H
#define TFM_OPENCL_CROSS_ENTROPY_H

#include "backends/opencl/internal.h"

/* The first part of the workspace, bytes but for `scratch`:
 *   tiles of the parts | partial of a chunk of rows | x as bf16, all rows, where the product is one */
struct tfm__cl_logits {
    size_t scratch;                /* floats of a part */
    size_t partial, rounded, all;  /* where the next two begin, and the end */
    struct tfm__cl_matrix product; /* that of the logits; .rounded: as matrix.c has it */
};

/* chunk: rows of a chunk at most; depth: the most of the products that share the tiles, 0 = there are none.
 * 0: it cannot be counted. */
int tfm__cl_logits_measure(const struct tfm__cl_device *device, const struct tfm_node *node,
                           const struct tfm_capacity *capacity, size_t chunk, size_t depth,
                           struct tfm__cl_logits *logits);
/* Extents, soft cap and scratch of either node. */
struct tfm_step tfm__cl_logits_step(const struct tfm_node *node,
                                    const struct tfm__cl_logits *logits);
/* The launches of the rows [step->first, + step->most): what the chunks of classes add, the logits to `kept` unless it
 * is absent; then loss and lse of `node`, a cross_entropy. */
enum tfm_status tfm__cl_logits_plan(struct tfm__cl_planner *planner, const struct tfm_node *node,
                                    const struct tfm_step *step,
                                    const struct tfm__cl_logits *logits,
                                    struct tfm__cl_operand kept, uint64_t cost);
enum tfm_status tfm__cl_logits_merge(struct tfm__cl_planner *planner, const struct tfm_node *node,
                                     const struct tfm_step *step,
                                     const struct tfm__cl_logits *logits);

/* The cross_entropy_grad that computes loss and lse of a cross_entropy along with its own, and the other way round;
 * NULL: there is none, each is computed for itself (cross_entropy_pair.c). */
const struct tfm_node *tfm__cl_cross_entropy_gradient(const struct tfm__cl_planner *planner,
                                                      const struct tfm_node *forward);
const struct tfm_node *tfm__cl_cross_entropy_forward(const struct tfm__cl_planner *planner,
                                                     const struct tfm_node *gradient);

#endif
