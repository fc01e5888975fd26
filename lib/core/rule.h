/* SPDX-License-Identifier: MIT
 * What lib/ops/<stem>.c gives the core: the shape rule and the gradient rule of one op, and the functions
 * through which every builder appends a node. */
#ifndef TFM__CORE_RULE_H
#define TFM__CORE_RULE_H

#include <tfm/graph.h>

/* A node whose gradient is being built. */
struct tfm__gradient {
    struct tfm_graph *graph;
    const struct tfm_node *node;
    /* What the loss changes by with each output; NULL = nothing that was asked about depends on it. */
    struct tfm_tensor *dy[TFM_MAX_OUTPUTS];
    /* 1 = the gradient of this input is wanted. */
    int wanted[TFM_MAX_INPUTS];
    /* Set by the rule for a wanted activation: its gradient, of its shape and dtype; NULL = zero. */
    struct tfm_tensor *dx[TFM_MAX_INPUTS];
    uint32_t asked; /* bit i: tfm__gradient_state was called for input i */
};

/* The state "<name>.grad" into which the gradient of a wanted parameter is added, of its shape: F32, or F64
 * for an F64 parameter. NULL if it is absent or not wanted, and after an error, which is in the graph. */
struct tfm_tensor *tfm__gradient_state(struct tfm__gradient *gradient, uint32_t input);
/* Input i of the node as builders take it; NULL if it is absent. */
struct tfm_tensor *tfm__gradient_input(const struct tfm__gradient *gradient, uint32_t input);

struct tfm__rule {
    /* Checks inputs and attributes of `node` (arity and NULLs of required inputs are already
     * checked) and fills dtype, extent, rank and shape of outputs[0..node->n_outputs). May set
     * `limit` of an I32 input or buffer (the smallest wins). Errors start with the op's name and hold both
     * shapes; the core puts the layer in front. node->n_outputs is what ops.def says; where the last ones
     * are optional, the rule lowers it. */
    enum tfm_status (*infer)(struct tfm_node *node, struct tfm_tensor *outputs,
                             struct tfm_error *err);
    /* Appends what computes the gradients of the wanted inputs from those of the outputs, of which at
     * least one is there: sets dx of activations, hands the states of parameters to ops that add into
     * them. Errors stay in the graph. NULL: the op has no gradient. */
    void (*gradient)(struct tfm__gradient *gradient);
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

/* The same for an op with several outputs or none: fills outputs [TFM_MAX_OUTPUTS], NULL where there is none.
 * Returns 1, or 0 after an error or a NULL that was passed on: all outputs are NULL then. */
int tfm__graph_append_node(struct tfm_graph *graph, enum tfm_op op,
                           struct tfm_tensor *const *inputs, uint32_t n_inputs,
                           const struct tfm_attrs *attrs, struct tfm_tensor **outputs);

/* Lowers the limit of an I32 tensor's values to `limit` (0 = none yet). */
void tfm__tensor_limit(const struct tfm_tensor *tensor, int64_t limit);
/* The same for values of which -1 means none. It stays an error where another op reads them as plain ones. */
void tfm__tensor_limit_or_none(const struct tfm_tensor *tensor, int64_t limit);
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
