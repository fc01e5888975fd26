/* SPDX-License-Identifier: MIT
 * The ops that nodes are made of, and the attributes that nodes carry.
 *
 * Shapes: N = rows of this run, R = rows that rows.out names, H = query heads, G = kv heads,
 * d = head_dim, D/F/V = widths. A = activation dtype: F32, F16, BF16 or F64; W = any float or
 * block dtype. Formulas and sources stand in lib/ops/<stem>.c.
 *
 *   op             inputs                                              output
 *   embedding      table [V, D] W, ids [N, ...] I32                    [N, ..., D] F32 (F64 if the table is F64)
 *   linear         x [N, ..., in] F32, weight [out, in] W, bias [out]? [N, ..., out] as x (F64: all F64)
 *   add            a [N, ...] A, b like a                              like a
 *   cast           x [N, ...] A                                        [N, ...] any A
 *   take_rows      x [N, ...] any                                      [R, ...] as x
 *   rms_norm       x [N, ..., D] A, gamma [D] F32 (F64 with F64)       like x
 *   rope           x [N, H, d] A, pos [N] I32, table [P, r/2, 2] F32   like x (first r of d rotated)
 *                  x [N, H, T, d], pos [N, T] or [T] (rope_layout 1)
 *                  x [N, T, H, d], pos [N, T] or [T] (rope_layout 2)
 *   gqa_attention  q [N, H, d] F32, k [N, G, d], v [N, G, d],          [N, H, d] as q
 *                  k_cache, v_cache [slots, cells, G, d]? F32|F16 state,
 *                  rel_bias [buckets, H]? F32, rel_bucket [2 M + 1]? I32  extra_outputs 1: lse [N, H]
 *   swiglu         gate [N, ...] A, up like gate                       like gate: silu(gate) * up
 *   layer_norm     x [N, ..., D] A, gamma [D] F32, beta [D]?           like x
 *   relu silu gelu x [N, ...] A                                        like x
 *   glu            gate [N, ...] A, up like gate                       like gate: sigmoid(gate) * up
 *   mul            a [N, ...] A, b like a                              like a
 *   scale          x [N, ...] A                                        like x: factor * x, through softcap
 *   linear_grad_x  weight [out, in] W, dy [N, ..., out] F32            [N, ..., in] as dy (F64: all F64)
 *   linear_grad_w  x [N, ..., in] F32, dy [N, ..., out],               none: adds to dw, db
 *                  dw [out, in]?, db [out]? state as x
 *   embedding_grad ids [N, ...] I32, dy [N, ..., D] F32,               none: adds to dtable
 *                  dtable [V, D] state as dy (F64: both F64)
 *   take_rows_grad dy [R, ...] A                                       [N, ...] as dy
 *   rms_norm_grad  x [N, ..., D] F32, gamma [D], dy like x,             like x, and adds to dgamma
 *                  dgamma [D]? state (F64: all F64)
 *   layer_norm_grad  the same, and dbeta [D]? state                     like x, and adds to dgamma, dbeta
 *   relu_grad silu_grad gelu_grad sigmoid_grad scale_grad
 *                  x [N, ...] A, dy like x                             like x
 *   swiglu_grad    gate [N, ...] A, up and dy like gate                dgate, dup like gate
 *   attention_grad  q, k, v as gqa_attention, dy [N, H, d], lse [N, H], dq as q, dk, dv as k, delta [N, H];
 *                  rel_bias, rel_bucket?, drel_bias [buckets, H]? state  adds to drel_bias
 *   cross_entropy  x [N, D] F32, weight [V, D] W, targets [N] I32      loss [N], lse [N] as x (F64: all F64)
 *                  each logit through softcap
 *   cross_entropy_grad  x, weight, targets, lse [N], dloss [N],        [N, D] as x; adds to dweight
 *                  dweight [V, D]? state as x
 *   sum_squares    x [...] F32 state (F64: F64)                        [1] as x
 *   adamw          w [...] trainable, g, m, v like w F32 states,       none: changes w, g, m, v, master
 *                  hyper [N, 8] F32, master like w? F32 state (F64: all F64, no master)
 */
#ifndef TFM_OP_H
#define TFM_OP_H

#include <stdint.h>

#include <tfm/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

enum tfm_op {
#define TFM_OP(id, NAME, stem, in_min, in_max, outputs, rows, in_place, diff, nmse, minor) \
    TFM_OP_##NAME = (id),
#include <tfm/ops.def>
#undef TFM_OP
};

/* One more than the largest op id: the size of a table indexed by op. Some of the ids may be free. */
union tfm_op_ids {
#define TFM_OP(id, NAME, stem, in_min, in_max, outputs, rows, in_place, diff, nmse, minor) \
    char NAME[(id) + 1];
#include <tfm/ops.def>
#undef TFM_OP
};
enum { TFM_OP_LIMIT = sizeof(union tfm_op_ids) };

enum tfm_op_rows { TFM_OP_ROWS_ROWWISE, TFM_OP_ROWS_MIXES, TFM_OP_ROWS_DROPS };
enum tfm_rope_style { TFM_ROPE_ADJACENT = 0, TFM_ROPE_HALVES = 1 };
/* x [N, H, d] with a position a row; with T positions a row, x [N, H, T, d] or x [N, T, H, d]. */
enum tfm_rope_layout { TFM_ROPE_ROWS = 0, TFM_ROPE_HEADS_FIRST = 1, TFM_ROPE_TOKENS_FIRST = 2 };

/* What a row of the input hyper of adamw holds, in this order. */
enum tfm_adamw_hyper {
    TFM_ADAMW_RATE,
    TFM_ADAMW_BETA1,
    TFM_ADAMW_BETA2,
    TFM_ADAMW_EPS,    /* added to the root */
    TFM_ADAMW_DECAY,  /* the share of w that is taken away: rate times the weight decay */
    TFM_ADAMW_FACTOR, /* on the gradient before it is used: 1 / tokens, times that of clipping */
    TFM_ADAMW_CORRECTION1, /* 1 / (1 - beta1^t) in step t = 1, 2, ... */
    TFM_ADAMW_CORRECTION2, /* 1 / (1 - beta2^t) */
    TFM_ADAMW_HYPERS
};

struct tfm_attrs {
#define TFM_ATTR(ctype, name, neutral, minor, meaning) ctype name;
#include <tfm/attrs.def>
#undef TFM_ATTR
};

struct tfm_op_info {
    const char *name; /* the stem: "rms_norm" */
    uint32_t inputs_min, inputs_max, outputs;
    enum tfm_op_rows rows;
    int32_t in_place;
    uint32_t differentiable;
    double nmse;
    uint32_t minor;
};

/* Facts about an op from ops.def; NULL for a value that is none. */
TFM_API const struct tfm_op_info *tfm_op_info(enum tfm_op op);

/* Its stem; "?" for a value that is none. */
TFM_API const char *tfm_op_name(enum tfm_op op);

#ifdef __cplusplus
}
#endif
#endif
