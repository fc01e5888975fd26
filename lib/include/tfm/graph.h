/* SPDX-License-Identifier: MIT
 * The graph: nodes and attributes, no data. Built by one thread, frozen by the first compile.
 *
 * Builders return the new tensor, or NULL after an error; NULL inputs are passed on, so that a whole
 * model is written without a test a line, and tfm_graph_check tells at the end. The first error
 * stays. All memory belongs to the graph. */
#ifndef TFM_GRAPH_H
#define TFM_GRAPH_H

#include <tfm/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tfm_graph;

/* NOMEM. */
TFM_API enum tfm_status tfm_graph_create(struct tfm_graph **graph, struct tfm_error *err);
/* Plans keep their graph alive; destroying it here only gives up the caller's hold. NULL is fine. */
TFM_API void tfm_graph_destroy(struct tfm_graph *graph);
/* OK, or the first error of any builder, with its text copied to err. */
TFM_API enum tfm_status tfm_graph_check(const struct tfm_graph *graph, struct tfm_error *err);

/* Trainable weight / constant buffer, looked up by `name` in the weights. Names are unique; the same
 * name with the same dtype and shape returns the same tensor (a tied head), otherwise an error. */
TFM_API struct tfm_tensor *tfm_graph_parameter(struct tfm_graph *graph, const char *name,
                                               enum tfm_dtype dtype, int rank,
                                               const int64_t *shape);
TFM_API struct tfm_tensor *tfm_graph_buffer(struct tfm_graph *graph, const char *name,
                                            enum tfm_dtype dtype, int rank, const int64_t *shape);
/* Input with one row a row of the run: [N, row...]; rank counts N, shape[0] is ignored. */
TFM_API struct tfm_tensor *tfm_graph_input(struct tfm_graph *graph, const char *name,
                                           enum tfm_dtype dtype, int rank, const int64_t *shape);
/* State, e.g. a KV cache [slots, cells, G, d]; zero when an exec opens. */
TFM_API struct tfm_tensor *tfm_graph_state(struct tfm_graph *graph, const char *name,
                                           enum tfm_dtype dtype, int rank, const int64_t *shape);
/* Marks an intermediate as an output of that name. Returns it. */
TFM_API struct tfm_tensor *tfm_graph_output(struct tfm_graph *graph, struct tfm_tensor *tensor,
                                            const char *name);
/* The same bytes under another shape: the outermost extent stays, the product of the rest too.
 * shape[0] is ignored for tensors whose outermost extent is N or R. */
TFM_API struct tfm_tensor *tfm_graph_reshape(struct tfm_graph *graph, struct tfm_tensor *tensor,
                                             int rank, const int64_t *shape);

/* Scopes nest: nodes appended in between carry the innermost. Name is the full one ("blk.3.ffn"). */
TFM_API void tfm_graph_scope_push(struct tfm_graph *graph, const char *kind, const char *name);
TFM_API void tfm_graph_scope_pop(struct tfm_graph *graph);

/* Looking at it. */
TFM_API uint32_t tfm_graph_node_count(const struct tfm_graph *graph);
TFM_API const struct tfm_node *tfm_graph_node(const struct tfm_graph *graph, uint32_t index);
TFM_API uint32_t tfm_graph_tensor_count(const struct tfm_graph *graph);
TFM_API const struct tfm_tensor *tfm_graph_tensor(const struct tfm_graph *graph, uint32_t index);
/* By name, NULL when there is none. */
TFM_API const struct tfm_tensor *tfm_graph_find(const struct tfm_graph *graph, const char *name);

/* ---- one function an op; shapes as in tfm/op.h. The shape rule in lib/ops/<stem>.c checks them and
 * names the layer, the op and both shapes in the error. ---- */

/* table [V, D], ids [N] I32 -> [N, D] */
TFM_API struct tfm_tensor *tfm_op_embedding(struct tfm_graph *graph, struct tfm_tensor *table,
                                            struct tfm_tensor *ids);
/* y = x W^T (+ b): x [N, in], weight [out, in], bias [out] or NULL -> [N, out] */
TFM_API struct tfm_tensor *tfm_op_linear(struct tfm_graph *graph, struct tfm_tensor *x,
                                         struct tfm_tensor *weight, struct tfm_tensor *bias);
/* a, b [N, ...] -> [N, ...] */
TFM_API struct tfm_tensor *tfm_op_add(struct tfm_graph *graph, struct tfm_tensor *a,
                                      struct tfm_tensor *b);
TFM_API struct tfm_tensor *tfm_op_cast(struct tfm_graph *graph, struct tfm_tensor *x,
                                       enum tfm_dtype dtype);
/* [N, ...] -> [R, ...]: the rows that rows.out names */
TFM_API struct tfm_tensor *tfm_op_take_rows(struct tfm_graph *graph, struct tfm_tensor *x);
/* x / sqrt(mean(x^2) + eps) * gamma, over the last extent (Zhang and Sennrich, arXiv:1910.07467) */
TFM_API struct tfm_tensor *tfm_op_rms_norm(struct tfm_graph *graph, struct tfm_tensor *x,
                                           struct tfm_tensor *gamma, double eps);
/* x [N, H, d], pos [N] I32, table [P, r/2, 2] (cos, sin) (Su et al., arXiv:2104.09864) */
TFM_API struct tfm_tensor *tfm_op_rope(struct tfm_graph *graph, struct tfm_tensor *x,
                                       struct tfm_tensor *pos, struct tfm_tensor *table,
                                       enum tfm_rope_style style);
/* q [N, H, d], k, v [N, G, d], caches [slots, cells, G, d] -> [N, H, d]. Appends k and v to the
 * caches, then softmax(q k^T scale) v over the cells <= the row's own; query head h reads kv head
 * h / (H/G). scale 0 = 1/sqrt(d). (Ainslie et al., arXiv:2305.13245) */
TFM_API struct tfm_tensor *tfm_op_gqa_attention(struct tfm_graph *graph, struct tfm_tensor *q,
                                                struct tfm_tensor *k, struct tfm_tensor *v,
                                                struct tfm_tensor *k_cache,
                                                struct tfm_tensor *v_cache, double scale);
/* silu(gate) * up (Shazeer, arXiv:2002.05202) */
TFM_API struct tfm_tensor *tfm_op_swiglu(struct tfm_graph *graph, struct tfm_tensor *gate,
                                         struct tfm_tensor *up);

#ifdef __cplusplus
}
#endif
#endif
