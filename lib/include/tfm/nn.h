/* SPDX-License-Identifier: MIT
 * Layers made of ops. A layer function appends the ops of one layer under a scope and declares its
 * parameters with names below that scope: tfm_nn_linear(g, "blk.0.ffn.gate", ...) declares
 * "blk.0.ffn.gate.weight" [out, in] and, if asked, "blk.0.ffn.gate.bias" [out].
 * Norm weights, biases and tables are F32 (F64 with F64 activations).
 * Errors stay in the graph (tfm_graph_check); NULL in, NULL out. A zeroed config field means what is
 * said first. docs/building-blocks.md tells formula, file and test of each. */
#ifndef TFM_NN_H
#define TFM_NN_H

#include <tfm/batch.h>
#include <tfm/cache.h>
#include <tfm/graph.h>
#include <tfm/init.h>
#include <tfm/positions.h>
#include <tfm/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- linear, embedding ---- */

/* x [N, ..., in] -> x W^T (+ b) [N, ..., out]; `dtype` is the storage of the weight. */
TFM_API struct tfm_tensor *tfm_nn_linear(struct tfm_graph *graph, const char *name,
                                         struct tfm_tensor *x, int64_t out, enum tfm_dtype dtype,
                                         int bias);
/* ids [N, ...] -> [N, ..., D]; parameter NAME.weight [V, D]. */
TFM_API struct tfm_tensor *tfm_nn_embedding(struct tfm_graph *graph, const char *name,
                                            struct tfm_tensor *ids, int64_t vocab, int64_t width,
                                            enum tfm_dtype dtype);

/* ---- norms: x [N, ..., D] -> [N, ..., D] ---- */

enum tfm_nn_norm_kind {
#define TFM_NN_NORM(id, NAME, name) TFM_NN_NORM_##NAME = (id),
#include <tfm/nn_kinds.def>
};
struct tfm_nn_norm {
    enum tfm_nn_norm_kind kind;
    double eps;
};
/* RMS: parameter NAME.weight [D]; LAYER: NAME.weight and NAME.bias [D]; NONE: x itself. */
TFM_API struct tfm_tensor *tfm_nn_norm(struct tfm_graph *graph, const char *name,
                                       struct tfm_tensor *x, const struct tfm_nn_norm *config);
TFM_API struct tfm_tensor *tfm_nn_rms_norm(struct tfm_graph *graph, const char *name,
                                           struct tfm_tensor *x, double eps);
TFM_API struct tfm_tensor *tfm_nn_layer_norm(struct tfm_graph *graph, const char *name,
                                             struct tfm_tensor *x, double eps);

/* ---- feed-forward: x [N, D] -> [N, D], hidden [N, F] ---- */

enum tfm_nn_ffn_kind {
#define TFM_NN_FFN(id, NAME, name, gated) TFM_NN_FFN_##NAME = (id),
#include <tfm/nn_kinds.def>
};
/* Parameters NAME.{up,down}.weight, gated kinds NAME.gate.weight too, 3 D F values instead of 2 D F.
 *   SWIGLU     down(silu(gate(x)) * up(x))         (Shazeer, arXiv:2002.05202)
 *   GEGLU      down(gelu_tanh(gate(x)) * up(x))
 *   GLU        down(sigmoid(gate(x)) * up(x))
 *   RELU       down(relu(up(x)))
 *   GELU       down(gelu(up(x))), with erf; GELU_TANH with its tanh approximation
 *   SILU       down(silu(up(x))): SwiGLU without its second branch (use_swiglu = false) */
struct tfm_nn_ffn {
    enum tfm_nn_ffn_kind kind;
    int64_t width; /* F */
    enum tfm_dtype gate, up, down;
    int gate_bias, up_bias, down_bias;
};
TFM_API struct tfm_tensor *tfm_nn_ffn(struct tfm_graph *graph, const char *name,
                                      struct tfm_tensor *x, const struct tfm_nn_ffn *config);
/* The short form of SWIGLU. */
struct tfm_nn_swiglu {
    int64_t width; /* F */
    enum tfm_dtype gate, up, down;
};
TFM_API struct tfm_tensor *tfm_nn_swiglu(struct tfm_graph *graph, const char *name,
                                         struct tfm_tensor *x, const struct tfm_nn_swiglu *config);
/* 8/3 D rounded up to a multiple (0 = 64): a gated F with the parameters of an ungated 4 D. 0 when D or
 * the multiple is not in 1..2^48. */
TFM_API int64_t tfm_nn_ffn_width(int64_t width, int64_t multiple);

/* ---- positions ---- */

/* x [N, D] + table[pos], pos [N] I32; a position past the end fails a run with CONTEXT_FULL.
 * Learned: parameter NAME.weight [positions, D]; sinusoidal: buffer NAME.table [positions, D]. */
TFM_API struct tfm_tensor *tfm_nn_learned_positions(struct tfm_graph *graph, const char *name,
                                                    struct tfm_tensor *x, struct tfm_tensor *pos,
                                                    int64_t positions, enum tfm_dtype dtype);
TFM_API struct tfm_tensor *tfm_nn_sinusoidal_positions(struct tfm_graph *graph, const char *name,
                                                       struct tfm_tensor *x, struct tfm_tensor *pos,
                                                       int64_t positions);
/* Buffer NAME.table [positions, r/2, 2] for tfm_op_rope; dtype F32, or F64 with F64 activations. */
TFM_API struct tfm_tensor *tfm_nn_rope_buffer(struct tfm_graph *graph, const char *name,
                                              enum tfm_dtype dtype, int64_t positions,
                                              const struct tfm_nn_rope *rope);
/* Parameter NAME.rel_bias [buckets, H] and buffer NAME.rel_bucket [2 max_distance + 1]: what attention
 * adds to its scores. Shared by the layers that get them, as T5 does. Returns 0, or 1 with both NULL. */
TFM_API int tfm_nn_relative_bias(struct tfm_graph *graph, const char *name, enum tfm_dtype dtype,
                                 int64_t heads, const struct tfm_nn_relative *config,
                                 struct tfm_tensor **rel_bias, struct tfm_tensor **rel_bucket);

/* ---- attention ---- */

/* Self-attention: o(gqa(rope(norm(q(x))), rope(norm(k(x))), v(x))); x [N, D] -> [N, D]. G = H is MHA,
 * G = 1 MQA; d is free of D / H. Parameters NAME.{q,k,v,o}.weight with q [H d, D], k, v [G d, D],
 * o [D, H d], and NAME.{q,k}_norm.weight [d] if asked; states NAME.{k,v}_cache [slots, cells, G, d].
 * Without slots and cells there is no cache: rows see their own sequence of this run only. */
struct tfm_nn_attention {
    int64_t heads, kv_heads, head_dim; /* H, G, d; G divides H */
    enum tfm_dtype q, k, v, o;         /* storage of the weights */
    int q_bias, k_bias, v_bias, o_bias;
    double scale; /* 0 = 1/sqrt(d) */
    enum tfm_rope_style rope_style;
    struct tfm_tensor *pos;        /* [N] I32 */
    struct tfm_tensor *rope_table; /* [P, r/2, 2], NULL = no rotation */
    int64_t slots, cells;
    enum tfm_dtype cache; /* F16 or F32 (F64 with F64 activations) */
    int q_norm, k_norm;   /* 1 = RMSNorm of each head, before the rotation */
    double qk_norm_eps;
    int bidirectional; /* 0 = causal */
    int64_t window;    /* a row sees positions less than `window` away; 0 = all */
    double softcap;    /* score -> softcap tanh(score / softcap); 0 = off */
    struct tfm_tensor *rel_bias, *rel_bucket; /* of tfm_nn_relative_bias, both or none */
};
TFM_API struct tfm_tensor *tfm_nn_attention(struct tfm_graph *graph, const char *name,
                                            struct tfm_tensor *x,
                                            const struct tfm_nn_attention *config);

/* ---- blocks ---- */

enum tfm_nn_block_kind {
#define TFM_NN_BLOCK(id, NAME, name) TFM_NN_BLOCK_##NAME = (id),
#include <tfm/nn_kinds.def>
};
/* Two sublayers, each with norms of its own; scopes NAME.{attn_norm,attn,ffn_norm,ffn}.
 *   PRE       u = x + attn(norm(x)), y = u + ffn(norm(u))   (Xiong et al., arXiv:2002.04745)
 *   POST      u = norm(x + attn(x)), y = norm(u + ffn(u))   (Vaswani et al., arXiv:1706.03762)
 *   PRE_POST  u = x + norm'(attn(norm(x))), y = u + norm'(ffn(norm(u))), with norms more:
 *             NAME.{attn,ffn}_post_norm                     (Gemma 2, arXiv:2408.00118) */
struct tfm_nn_block {
    double eps;
    struct tfm_nn_attention attention;
    struct tfm_nn_ffn ffn;
    enum tfm_nn_block_kind kind;
    enum tfm_nn_norm_kind norm;
};
TFM_API struct tfm_tensor *tfm_nn_block(struct tfm_graph *graph, const char *name,
                                        struct tfm_tensor *x, const struct tfm_nn_block *config);

/* cap tanh(x / cap) for x [N, V] F32, F16, BF16 or F64. */
TFM_API struct tfm_tensor *tfm_nn_softcap(struct tfm_graph *graph, const char *name,
                                          struct tfm_tensor *x, double cap);

/* ---- a whole stack ---- */

/* Embedding, blocks, norm, head: ids -> logits [R, V] (output "logits"). Zeroed fields are the Llama
 * decoder; GPT-2, Qwen 2 and 3, Gemma and T5's decoder without cross attention are settings
 * (docs/building-blocks.md has a table).
 * Inputs "ids" and, with ROPE, LEARNED and SINUSOIDAL, "pos", both [N]. Scopes: token_embd, pos_embd,
 * blk.N, output_norm, output (the scope has no parameter when tied). Buffers: "rope.table",
 * "pos_embd.table", "rel_pos.rel_bucket". */
struct tfm_nn_decoder {
    int64_t vocab, width, layers, heads, kv_heads, head_dim, ffn_width;
    double eps;
    int64_t rope_dims, positions; /* r, 0 = head_dim; P of the table */
    enum tfm_rope_style rope_style;
    int64_t slots, cells; /* both 0 = no cache */
    enum tfm_dtype cache;
    enum tfm_dtype embedding, head; /* storage; head is not read when tied; F64 = F64 activations */
    int tied;
    /* Storage of the weights of each layer, [layers]; NULL = all are `each`. */
    const struct tfm_nn_decoder_layer {
        enum tfm_dtype q, k, v, o, gate, up, down;
        int q_bias, k_bias, v_bias, o_bias, gate_bias, up_bias, down_bias;
        int64_t window; /* as in attention */
    } * layer;
    struct tfm_nn_decoder_layer each;

    enum tfm_nn_block_kind block;
    enum tfm_nn_norm_kind norm;
    int no_final_norm; /* POST blocks end with one of their own */
    enum tfm_nn_ffn_kind ffn;
    enum tfm_nn_position_kind position;
    enum tfm_dtype position_weight;  /* LEARNED: storage */
    struct tfm_nn_rope rope;         /* ROPE: how init fills the table; dims 0 = rope_dims */
    struct tfm_nn_relative relative; /* RELATIVE; its direction is that of `bidirectional` */
    double embedding_scale;          /* on the embedding, before positions; 0 = 1 */
    int qk_norm;                     /* of each head of q and k, with eps */
    double scale, softcap;           /* of attention */
    int bidirectional;
    double logit_softcap; /* 0 = off */
};
TFM_API struct tfm_tensor *tfm_nn_decoder(struct tfm_graph *graph,
                                          const struct tfm_nn_decoder *config);
/* The same parameters under the loss of every row instead of its logits, which never exist all at once:
 * inputs "ids", "pos" and "targets" [N] I32 (-1 = none) -> output "loss" [N], -ln p(target), 0 without one. */
TFM_API struct tfm_tensor *tfm_nn_decoder_loss(struct tfm_graph *graph,
                                               const struct tfm_nn_decoder *config);

#ifdef __cplusplus
}
#endif
#endif
