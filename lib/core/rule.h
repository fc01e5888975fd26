/* SPDX-License-Identifier: MIT
 * What lib/ops/<stem>.c gives the core: the shape rule of one op (later its gradient rule too), and the
 * one function through which every builder appends a node. */
#ifndef TFM__CORE_RULE_H
#define TFM__CORE_RULE_H

#include <tfm/graph.h>

struct tfm__rule {
    /* Checks inputs and attributes of `node` (arity and NULLs of required inputs are already
     * checked) and fills dtype, extent, rank and shape of outputs[0..node->n_outputs). May set
     * `limit` of an I32 input or buffer (the smallest wins). Errors start with the op's name and hold both
     * shapes; the core puts the layer in front. */
    enum tfm_status (*infer)(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err);
};

#define TFM_OP(id, NAME, stem, in_min, in_max, outputs, rows, in_place, diff, nmse, minor) \
    extern const struct tfm__rule tfm__rule_##stem;
#include <tfm/ops.def>
#undef TFM_OP

/* Appends a node and returns its first output, or NULL (the error is in the graph). A required input
 * that is NULL passes NULL on without an error of its own. attrs NULL = all neutral. */
struct tfm_tensor *tfm__graph_append(struct tfm_graph *graph, enum tfm_op op,
                                     struct tfm_tensor *const *inputs, uint32_t n_inputs,
                                     const struct tfm_attrs *attrs);

/* Lowers the limit of an I32 tensor's values to `limit` (0 = none yet). */
void tfm__tensor_limit(const struct tfm_tensor *tensor, int64_t limit);
/* The same for values that are positions: one at or past the limit is CONTEXT_FULL. */
void tfm__tensor_positions(const struct tfm_tensor *tensor, int64_t limit);

/* "[N, 9, 64]" for error texts. Returns buffer. */
struct tfm__shape_text {
    char text[96];
};
const char *tfm__shape_format(const struct tfm_tensor *tensor, struct tfm__shape_text *buffer);

/* "x 'h' [N, 3] f32, weight 'w' [5, 4] f32" of all inputs, cut to `size`. roles[i] names input i; NULL =
 * names, shapes and dtypes only. */
void tfm__operands_format(const struct tfm_node *node, const char *const *roles, char *list,
                          size_t size);

/* The layer of a node; "graph" for one that belongs to none. */
const char *tfm__layer_name(const struct tfm_node *node);

/* Puts in front of a backend's error where it came from: a plugin that said yes in supports() and then
 * fails may not know layer and shapes, or say nothing at all. what: "compile", "run". */
void tfm__nodes_blame(struct tfm_error *err, enum tfm_status status, const char *backend,
                      const char *what, const struct tfm_node *const *nodes, uint32_t n);

#endif
