/* SPDX-License-Identifier: MIT
 * The graph: nodes and attributes, no data. Built by one thread, frozen by the first compile.
 *
 * Builders return the new tensor, or NULL after an error; NULL inputs are passed on, so that a whole
 * model is written without a test a line, and tfm_graph_check tells at the end. The first error
 * stays, until the graph is rewound. All memory belongs to the graph. */
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

/* A place in the building of a graph, to come back to when a layer is refused. Members are private. */
struct tfm_graph_mark {
    const struct tfm_graph *graph;
    uint32_t tensors, nodes;
    const void *scopes, *scope, *makers, *outputs;
    uint32_t backwards;
};
TFM_API void tfm_graph_mark(const struct tfm_graph *graph, struct tfm_graph_mark *mark);
/* Takes back everything since the mark: tensors (pointers to them are void), nodes, scopes, outputs that
 * were marked, makers of buffers, limits of indices, gradients, and the error. The same mark may be used again.
 * INVALID_ARGUMENT: the mark is of another graph, or of a part that an earlier rewind took back; BUSY: the
 * graph was compiled. The graph is unchanged then. */
TFM_API enum tfm_status tfm_graph_rewind(struct tfm_graph *graph, const struct tfm_graph_mark *mark,
                                         struct tfm_error *err);

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
/* Marks a parameter of a float dtype, and so every use of it, as trainable: an optimizer may change it.
 * Its values then lie in memory of each exec, filled from the weights when it opens, instead of with the
 * weights; tfm_exec_create_sharing lets several plans work on one of them. Returns it. A rewind of the graph
 * leaves it trainable. */
TFM_API struct tfm_tensor *tfm_graph_train(struct tfm_graph *graph, struct tfm_tensor *parameter);
/* Marks an intermediate as an output of that name. Returns it. */
TFM_API struct tfm_tensor *tfm_graph_output(struct tfm_graph *graph, struct tfm_tensor *tensor,
                                            const char *name);
/* The same bytes under another shape: the outermost extent stays, the product of the rest too.
 * shape[0] is ignored for tensors whose outermost extent is N or R. */
TFM_API struct tfm_tensor *tfm_graph_reshape(struct tfm_graph *graph, struct tfm_tensor *tensor,
                                             int rank, const int64_t *shape);

/* How the values of a buffer are made: writes all of them, in its dtype. `settings` are those that were
 * given with it. */
typedef enum tfm_status tfm_graph_make(const struct tfm_tensor *buffer, const void *settings,
                                       void *values, struct tfm_error *err);
/* Says how a buffer is made; `bytes` bytes of settings are copied. Saying it twice must mean the same.
 * Returns the buffer. */
TFM_API struct tfm_tensor *tfm_graph_buffer_maker(struct tfm_graph *graph,
                                                  struct tfm_tensor *buffer, tfm_graph_make *make,
                                                  const void *settings, size_t bytes);
/* Makes them: `values` holds the whole buffer. NOT_FOUND: nobody said how; INVALID_ARGUMENT: `bytes` is
 * not its size; whatever the maker says. */
TFM_API enum tfm_status tfm_graph_buffer_values(const struct tfm_graph *graph,
                                                const struct tfm_tensor *buffer, void *values,
                                                size_t bytes, struct tfm_error *err);

/* Records an error of a layer, with the innermost scope in front; the first one stays. Returns NULL. */
TFM_API struct tfm_tensor *tfm_graph_refuse(struct tfm_graph *graph, enum tfm_status status,
                                            const char *format, ...) TFM_PRINTF(3, 4);

/* Scopes nest: nodes appended in between carry the innermost. Name is the full one ("blk.3.ffn"). */
TFM_API void tfm_graph_scope_push(struct tfm_graph *graph, const char *kind, const char *name);
TFM_API void tfm_graph_scope_pop(struct tfm_graph *graph);

/* Looking at it. */
TFM_API uint32_t tfm_graph_node_count(const struct tfm_graph *graph);
TFM_API const struct tfm_node *tfm_graph_node(const struct tfm_graph *graph, uint32_t index);
TFM_API uint32_t tfm_graph_tensor_count(const struct tfm_graph *graph);
TFM_API const struct tfm_tensor *tfm_graph_tensor(const struct tfm_graph *graph, uint32_t index);
/* Parameters, what an optimizer may change, or buffers, what it may not: each once, in the order in which
 * they were declared. `visit` ends the walk with any other status than OK, which is returned then. */
TFM_API enum tfm_status
tfm_graph_parameters(const struct tfm_graph *graph,
                     enum tfm_status (*visit)(void *context, const struct tfm_tensor *tensor),
                     void *context);
TFM_API enum tfm_status tfm_graph_buffers(const struct tfm_graph *graph,
                                          enum tfm_status (*visit)(void *context,
                                                                   const struct tfm_tensor *tensor),
                                          void *context);
/* By name, NULL when there is none. */
TFM_API const struct tfm_tensor *tfm_graph_find(const struct tfm_graph *graph, const char *name);

/* ---- one function an op; shapes as in tfm/op.h. The shape rule in lib/ops/<stem>.c checks them and
 * names the layer, the op and both shapes in the error. ---- */

/* table [V, D], ids [N, ...] I32 -> [N, ..., D] */
TFM_API struct tfm_tensor *tfm_op_embedding(struct tfm_graph *graph, struct tfm_tensor *table,
                                            struct tfm_tensor *ids);
/* The same with positions for ids: one past the end of the table fails a run with CONTEXT_FULL. */
TFM_API struct tfm_tensor *tfm_op_position_embedding(struct tfm_graph *graph,
                                                     struct tfm_tensor *table,
                                                     struct tfm_tensor *pos);
/* y = x W^T (+ b): x [N, ..., in], weight [out, in], bias [out] or NULL -> [N, ..., out] */
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
/* (x - mean(x)) / sqrt(var(x) + eps) * gamma + beta, over the last extent; beta may be NULL (Ba et al.,
 * arXiv:1607.06450) */
TFM_API struct tfm_tensor *tfm_op_layer_norm(struct tfm_graph *graph, struct tfm_tensor *x,
                                             struct tfm_tensor *gamma, struct tfm_tensor *beta,
                                             double eps);
/* x [N, H, d] with d even, pos [N] I32, table [P, r/2, 2] (cos, sin) (Su et al., arXiv:2104.09864).
 * A position past the end of the table fails a run with CONTEXT_FULL. */
TFM_API struct tfm_tensor *tfm_op_rope(struct tfm_graph *graph, struct tfm_tensor *x,
                                       struct tfm_tensor *pos, struct tfm_tensor *table,
                                       enum tfm_rope_style style);
/* The same with a layout: HEADS_FIRST takes x [N, H, T, d], TOKENS_FIRST x [N, T, H, d], both with pos
 * [N, T], an input, or [T], a buffer. */
TFM_API struct tfm_tensor *tfm_op_rope_layout(struct tfm_graph *graph, struct tfm_tensor *x,
                                              struct tfm_tensor *pos, struct tfm_tensor *table,
                                              enum tfm_rope_style style,
                                              enum tfm_rope_layout layout);
/* q [N, H, d], k, v [N, G, d], caches [slots, cells, G, d] -> [N, H, d]. Appends k and v to the
 * caches, then softmax(q k^T scale) v over the cells <= the row's own; query head h reads kv head
 * h / (H/G). scale 0 = 1/sqrt(d). (Ainslie et al., arXiv:2305.13245) */
TFM_API struct tfm_tensor *tfm_op_gqa_attention(struct tfm_graph *graph, struct tfm_tensor *q,
                                                struct tfm_tensor *k, struct tfm_tensor *v,
                                                struct tfm_tensor *k_cache,
                                                struct tfm_tensor *v_cache, double scale);
/* Everything that an attention may be; all zero = causal, scaled by 1/sqrt(d), without caches: then a
 * row sees the rows of its own sequence in this run, and past must be 0. A row that sees nothing gives
 * 0. */
struct tfm_attention {
    double scale;      /* on q k^T; 0 = 1/sqrt(d) */
    int bidirectional; /* 1 = a row sees all rows of its sequence, past and of this run */
    int window;        /* > 0: only cells less than `window` positions away; 0 = all */
    double softcap;    /* > 0: score = softcap tanh(score / softcap), before the bias; 0 = off */
    struct tfm_tensor *k_cache, *v_cache; /* state [slots, cells, G, d], both or none */
    /* Added to the score of head h for key cell j and query cell i:
     * rel_bias[rel_bucket[min(max(j - i, -M), M) + M]][h]. rel_bias [buckets, H] F32 (F64 with F64),
     * rel_bucket [2 M + 1] I32 buffer; both or none (Raffel et al., arXiv:1910.10683) */
    struct tfm_tensor *rel_bias, *rel_bucket;
    struct tfm_tensor *
        *lse; /* unless NULL: set to a second output [N, H], log of the sum of exp(score);
                              * without caches only */
};
TFM_API struct tfm_tensor *tfm_op_attention(struct tfm_graph *graph, struct tfm_tensor *q,
                                            struct tfm_tensor *k, struct tfm_tensor *v,
                                            const struct tfm_attention *config);

/* ---- element by element; x, gate, a [N, ...], the second like the first -> the same shape ---- */

/* silu(gate) * up (Shazeer, arXiv:2002.05202) */
TFM_API struct tfm_tensor *tfm_op_swiglu(struct tfm_graph *graph, struct tfm_tensor *gate,
                                         struct tfm_tensor *up);
/* sigmoid(gate) * up (Dauphin et al., arXiv:1612.08083) */
TFM_API struct tfm_tensor *tfm_op_glu(struct tfm_graph *graph, struct tfm_tensor *gate,
                                      struct tfm_tensor *up);
/* max(x, 0) */
TFM_API struct tfm_tensor *tfm_op_relu(struct tfm_graph *graph, struct tfm_tensor *x);
/* x sigmoid(x) */
TFM_API struct tfm_tensor *tfm_op_silu(struct tfm_graph *graph, struct tfm_tensor *x);
/* x Phi(x) by erf, or its tanh approximation (Hendrycks and Gimpel, arXiv:1606.08415) */
TFM_API struct tfm_tensor *tfm_op_gelu(struct tfm_graph *graph, struct tfm_tensor *x,
                                       int tanh_form);
/* a * b */
TFM_API struct tfm_tensor *tfm_op_mul(struct tfm_graph *graph, struct tfm_tensor *a,
                                      struct tfm_tensor *b);
/* factor * x */
TFM_API struct tfm_tensor *tfm_op_scale(struct tfm_graph *graph, struct tfm_tensor *x,
                                        double factor);
/* softcap * tanh(x / softcap): op scale with factor 1 and a soft cap, positive and finite */
TFM_API struct tfm_tensor *tfm_op_softcap(struct tfm_graph *graph, struct tfm_tensor *x,
                                          double softcap);
/* The loss of a classifier with the classes weight [V, D], without its logits in memory: x [N, D], targets [N]
 * of which -1 = none -> loss [N], 0 without a target; lse [N], log of the sum of exp(logit), is set unless NULL.
 * softcap > 0 (finite): logit = softcap tanh(x . class / softcap) (arXiv:2408.00118); 0 = x . class.
 * The mean is the caller's: the gradient that he seeds loss with is 1 / (rows with a target). */
TFM_API struct tfm_tensor *tfm_op_cross_entropy(struct tfm_graph *graph, struct tfm_tensor *x,
                                                struct tfm_tensor *weight,
                                                struct tfm_tensor *targets, double softcap,
                                                struct tfm_tensor **lse);

#ifdef __cplusplus
}
#endif
#endif
