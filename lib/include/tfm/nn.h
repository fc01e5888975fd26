/* SPDX-License-Identifier: MIT
 * Layers made of ops. A layer function appends the ops of one layer under a scope and declares its
 * parameters with names below that scope: tfm_nn_linear(g, "blk.0.ffn.gate", ...) declares
 * "blk.0.ffn.gate.weight" [out, in] and, if asked, "blk.0.ffn.gate.bias" [out].
 * Errors stay in the graph (tfm_graph_check); NULL in, NULL out. */
#ifndef TFM_NN_H
#define TFM_NN_H

#include <tfm/graph.h>
#include <tfm/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

/* x [N, in] -> [N, out]; `dtype` is the storage of the weight, the bias is F32 (F64 for F64). */
TFM_API struct tfm_tensor *tfm_nn_linear(struct tfm_graph *graph, const char *name,
                                         struct tfm_tensor *x, int64_t out, enum tfm_dtype dtype,
                                         int bias);
/* ids [N] -> [N, D]; parameter NAME.weight [V, D]. */
TFM_API struct tfm_tensor *tfm_nn_embedding(struct tfm_graph *graph, const char *name,
                                            struct tfm_tensor *ids, int64_t vocab, int64_t width,
                                            enum tfm_dtype dtype);
/* x [N, D] -> [N, D]; parameter NAME.weight [D]. */
TFM_API struct tfm_tensor *tfm_nn_rms_norm(struct tfm_graph *graph, const char *name,
                                           struct tfm_tensor *x, double eps);

/* down(silu(gate(x)) * up(x)); x [N, D] -> [N, D]; parameters NAME.{gate,up,down}.weight. */
struct tfm_nn_swiglu {
    int64_t width; /* F */
    enum tfm_dtype gate, up, down;
};
TFM_API struct tfm_tensor *tfm_nn_swiglu(struct tfm_graph *graph, const char *name,
                                         struct tfm_tensor *x, const struct tfm_nn_swiglu *config);

/* Rotary table [positions, dims/2, 2] of cos, sin, computed in f64 and rounded once.
 * frequency i = theta^(-2i/dims) / factors[i]; factors [dims/2] may be NULL (all 1).
 * INVALID_ARGUMENT: dims odd or not positive, theta or positions not positive; DTYPE: not F32, F64. */
TFM_API enum tfm_status tfm_nn_rope_table(enum tfm_dtype dtype, int64_t positions, int64_t dims,
                                          double theta, const float *factors, void *table,
                                          struct tfm_error *err);

/* Self-attention with a KV cache: o(gqa(rope(q(x)), rope(k(x)), v(x))); x [N, D] -> [N, D].
 * Parameters NAME.{q,k,v,o}.weight with q [H d, D], k, v [G d, D], o [D, H d]; states NAME.{k,v}_cache
 * [slots, cells, G, d]. */
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
};
TFM_API struct tfm_tensor *tfm_nn_attention(struct tfm_graph *graph, const char *name,
                                            struct tfm_tensor *x,
                                            const struct tfm_nn_attention *config);

/* Pre-norm block: u = x + attn(norm(x)), y = u + ffn(norm(u)); scopes NAME.{attn_norm,attn,ffn_norm,
 * ffn}. */
struct tfm_nn_block {
    double eps;
    struct tfm_nn_attention attention;
    struct tfm_nn_swiglu ffn;
};
TFM_API struct tfm_tensor *tfm_nn_block(struct tfm_graph *graph, const char *name,
                                        struct tfm_tensor *x, const struct tfm_nn_block *config);

/* The Llama decoder: ids, pos -> logits [R, V] (output "logits"); inputs "ids" and "pos", buffer
 * "rope.table". Scopes: token_embd, blk.N, output_norm, output (absent when tied). */
struct tfm_nn_decoder {
    int64_t vocab, width, layers, heads, kv_heads, head_dim, ffn_width;
    double eps;
    int64_t rope_dims, positions; /* r; P of the table */
    enum tfm_rope_style rope_style;
    int64_t slots, cells;
    enum tfm_dtype cache;
    enum tfm_dtype embedding, head; /* storage; head is not read when tied */
    int tied;
    /* Storage of the weights of each layer, [layers]; NULL = all F32 without biases. */
    const struct tfm_nn_decoder_layer {
        enum tfm_dtype q, k, v, o, gate, up, down;
        int q_bias, k_bias, v_bias, o_bias;
    } * layer;
};
TFM_API struct tfm_tensor *tfm_nn_decoder(struct tfm_graph *graph,
                                          const struct tfm_nn_decoder *config);

#ifdef __cplusplus
}
#endif
#endif
