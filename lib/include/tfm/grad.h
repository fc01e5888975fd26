/* SPDX-License-Identifier: MIT
 * Gradients by reverse-mode differentiation: nodes that compute them are appended to the same graph, so that
 * one plan runs forward and backward. Include it after or instead of tfm/graph.h.
 *
 * The gradient of a trainable parameter (tfm_graph_train) is a state "<name>.grad" of its shape, F32 (F64 for
 * an F64 parameter): zero when an exec opens, and every run adds to it. So gradients accumulate over
 * runs until somebody zeroes them (op adamw does, or tfm_exec_state_write). */
#ifndef TFM_GRAD_H
#define TFM_GRAD_H

#include <tfm/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Asks for the gradient of an input or intermediate of a float dtype, before tfm_graph_backward: those of
 * activations are otherwise made only where a trainable parameter lies behind them. Returns the tensor. */
TFM_API struct tfm_tensor *tfm_graph_watch(struct tfm_graph *graph, struct tfm_tensor *tensor);

/* Does not keep an intermediate for backward: what tfm_graph_backward appends computes it once more where a
 * gradient needs it, from what its op was given; if that is recomputed too, from the beginning of the chain. Before
 * tfm_graph_backward. Bits and order of sums stay as they are. INVALID_ARGUMENT: it is no result of an op, or of one
 * with states. Returns the tensor. */
TFM_API struct tfm_tensor *tfm_graph_recompute(struct tfm_graph *graph, struct tfm_tensor *tensor);

/* Appends what computes, from the gradient of each of n outputs, those of all trainable parameters and watched
 * tensors that they depend on. gradients[i] is like outputs[i] in shape and dtype, often an input.
 * The order of the nodes, and so of every sum, depends on the graph alone. Nodes keep the scope of
 * the node that they are the gradient of.
 *   outputs    [n] activations: results of ops
 * UNSUPPORTED: an op in between has no gradient (the text names the layer and the op); INVALID_ARGUMENT,
 * SHAPE, DTYPE: a gradient does not fit its output; BUSY: the graph was compiled; NOMEM. The error stays in
 * the graph, as that of a builder does. */
TFM_API enum tfm_status tfm_graph_backward(struct tfm_graph *graph, uint32_t n,
                                           struct tfm_tensor *const *outputs,
                                           struct tfm_tensor *const *gradients,
                                           struct tfm_error *err);

/* The gradient of a tensor after tfm_graph_backward: of a trainable parameter its state, of an activation a
 * tensor like it. NULL: nothing that was asked about depends on it, or it was not wanted. */
TFM_API struct tfm_tensor *tfm_graph_gradient(const struct tfm_graph *graph,
                                              const struct tfm_tensor *tensor);

/* ---- one function an op that gradients are made of; shapes as in tfm/op.h. A state is added to. Ops
 * without outputs return the first state that they add to, or NULL after an error; of several outputs the
 * first is returned and the others set by pointer, NULL after an error. ---- */

/* dx = dy W: weight [out, in], dy [N, ..., out] -> [N, ..., in] */
TFM_API struct tfm_tensor *tfm_op_linear_grad_x(struct tfm_graph *graph, struct tfm_tensor *weight,
                                                struct tfm_tensor *dy);
/* dW += dy^T x, db += sum of dy: x [N, ..., in], dy [N, ..., out], states dw [out, in], db [out], of
 * which one may be NULL */
TFM_API struct tfm_tensor *tfm_op_linear_grad_w(struct tfm_graph *graph, struct tfm_tensor *x,
                                                struct tfm_tensor *dy, struct tfm_tensor *dw,
                                                struct tfm_tensor *db);
/* dq, dk, dv of attention without caches, from scores that are computed again: q, dy [N, H, d], k, v [N, G, d], lse
 * [N, H] as gqa_attention gives it; of config scale, masks, rel_bias and rel_bucket count; state drel_bias
 * [buckets, H] or NULL is added to. Returns dq, sets dk and dv. */
TFM_API struct tfm_tensor *tfm_op_attention_grad(struct tfm_graph *graph, struct tfm_tensor *q,
                                                 struct tfm_tensor *k, struct tfm_tensor *v,
                                                 struct tfm_tensor *dy, struct tfm_tensor *lse,
                                                 const struct tfm_attention *config,
                                                 struct tfm_tensor *drel_bias,
                                                 struct tfm_tensor **dk, struct tfm_tensor **dv);
/* dx = dloss (P - onehot(targets)) W with P = exp(logits - lse), dW += its other half: x [N, D], weight [V, D],
 * targets [N], lse [N] as cross_entropy gives it, dloss [N], state dweight [V, D] or NULL -> [N, D]. A row
 * without target has no part in either. softcap as in tfm_op_cross_entropy. */
TFM_API struct tfm_tensor *
tfm_op_cross_entropy_grad(struct tfm_graph *graph, struct tfm_tensor *x, struct tfm_tensor *weight,
                          struct tfm_tensor *targets, struct tfm_tensor *lse,
                          struct tfm_tensor *dloss, double softcap, struct tfm_tensor *dweight);

/* dtable[ids[n]] += dy[n]: ids [N, ...] I32, dy [N, ..., D], state dtable [V, D]. positions 1: as in
 * tfm_op_position_embedding */
TFM_API struct tfm_tensor *tfm_op_embedding_grad(struct tfm_graph *graph, struct tfm_tensor *ids,
                                                 struct tfm_tensor *dy, struct tfm_tensor *dtable,
                                                 int positions);
/* dy [R, ...] -> [N, ...]: row n is the sum of the rows r with rows.out[r] = n */
TFM_API struct tfm_tensor *tfm_op_take_rows_grad(struct tfm_graph *graph, struct tfm_tensor *dy);
/* The rotation of tfm_op_rope_layout by the negative angle: x [N, H, d] or with a layout -> like x */
TFM_API struct tfm_tensor *tfm_op_rope_inverse(struct tfm_graph *graph, struct tfm_tensor *x,
                                               struct tfm_tensor *pos, struct tfm_tensor *table,
                                               enum tfm_rope_style style,
                                               enum tfm_rope_layout layout);

/* The gradients of both norms: x [N, ..., D], gamma [D], dy like x -> like x, all F32 or all F64; states dgamma and
 * dbeta [D] are added to and may be NULL. eps as in the norm */
TFM_API struct tfm_tensor *tfm_op_rms_norm_grad(struct tfm_graph *graph, struct tfm_tensor *x,
                                                struct tfm_tensor *gamma, struct tfm_tensor *dy,
                                                struct tfm_tensor *dgamma, double eps);
TFM_API struct tfm_tensor *tfm_op_layer_norm_grad(struct tfm_graph *graph, struct tfm_tensor *x,
                                                  struct tfm_tensor *gamma, struct tfm_tensor *dy,
                                                  struct tfm_tensor *dgamma,
                                                  struct tfm_tensor *dbeta, double eps);

/* Element by element: x, dy [N, ...] F32, F16, BF16 or F64 -> like x. The gradients of
 * relu, silu, gelu, of a sigmoid (the gate of glu), and of scale with a soft cap (0 = none). glu needs no op of
 * its own: its gate's gradient is sigmoid_grad of gate and dy up. */
TFM_API struct tfm_tensor *tfm_op_relu_grad(struct tfm_graph *graph, struct tfm_tensor *x,
                                            struct tfm_tensor *dy);
TFM_API struct tfm_tensor *tfm_op_silu_grad(struct tfm_graph *graph, struct tfm_tensor *x,
                                            struct tfm_tensor *dy);
TFM_API struct tfm_tensor *tfm_op_gelu_grad(struct tfm_graph *graph, struct tfm_tensor *x,
                                            struct tfm_tensor *dy, int tanh_form);
TFM_API struct tfm_tensor *tfm_op_sigmoid_grad(struct tfm_graph *graph, struct tfm_tensor *x,
                                               struct tfm_tensor *dy);
TFM_API struct tfm_tensor *tfm_op_scale_grad(struct tfm_graph *graph, struct tfm_tensor *x,
                                             struct tfm_tensor *dy, double factor, double softcap);
/* Both gradients of swiglu, which read the same three tensors: dgate = dy up s (1 + gate (1 - s)), dup = dy gate s
 * with s = sigmoid(gate): gate, up, dy [N, ...] F32, F16, BF16 or F64, of one shape and dtype -> dgate [N, ...];
 * dup like it. */
TFM_API struct tfm_tensor *tfm_op_swiglu_grad(struct tfm_graph *graph, struct tfm_tensor *gate,
                                              struct tfm_tensor *up, struct tfm_tensor *dy,
                                              struct tfm_tensor **dup);

/* ---- what an optimizer is made of ---- */

/* The sum of the squares of a state x [...] F32 or F64 -> [1] as x. Read it after a run of one row; a run without
 * rows computes nothing. */
TFM_API struct tfm_tensor *tfm_op_sum_squares(struct tfm_graph *graph, struct tfm_tensor *x);

/* One update of a parameter (Loshchilov and Hutter, arXiv:1711.05101), in one pass that also zeroes the gradient: w
 * [...] trainable, states g, m, v like w, F32 (F64 if w is F64), hyper [N, 8] F32 (F64 if w is), a row as
 * enum tfm_adamw_hyper of tfm/op.h says; the first counts. A w that is F16 or BF16 has its exact values in the state master [...] F32, which is NULL otherwise.
 * A run without rows changes nothing. Returns w. tfm/optimizer.h makes whole updates of it. */
TFM_API struct tfm_tensor *tfm_op_adamw(struct tfm_graph *graph, struct tfm_tensor *w,
                                        struct tfm_tensor *g, struct tfm_tensor *m,
                                        struct tfm_tensor *v, struct tfm_tensor *hyper,
                                        struct tfm_tensor *master);

#ifdef __cplusplus
}
#endif
#endif
