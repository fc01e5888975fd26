/* SPDX-License-Identifier: MIT
 * Stacks of two blocks for the tests of gradients. */
#include "tests/train/stacks.h"

static struct tfm_nn_decoder small(enum tfm_dtype dtype)
{
    return (struct tfm_nn_decoder){
        .vocab = 7,
        .width = 6,
        .layers = 2,
        .heads = 4,
        .kv_heads = 2,
        .head_dim = 2,
        .ffn_width = 5,
        .eps = 1e-3,
        .positions = 8,
        .relative = {.buckets = 4, .max_distance = 3},
        .embedding = dtype,
        .head = dtype,
        .position_weight = dtype,
        .each = {dtype, dtype, dtype, dtype, dtype, dtype, dtype, 0, 0, 0, 0, 0, 0, 0, 0},
    };
}

static void with_biases(struct tfm_nn_decoder *c)
{
    c->each.q_bias = c->each.k_bias = c->each.v_bias = c->each.o_bias = 1;
    c->each.gate_bias = c->each.up_bias = c->each.down_bias = 1;
}

static void llama(struct tfm_nn_decoder *c)
{
    c->tied = 1;
}

static void gpt2(struct tfm_nn_decoder *c)
{
    c->kv_heads = c->heads;
    c->norm = TFM_NN_NORM_LAYER;
    c->ffn = TFM_NN_FFN_GELU_TANH;
    c->position = TFM_NN_POSITION_LEARNED;
    c->tied = 1;
    with_biases(c);
}

static void gemma2(struct tfm_nn_decoder *c)
{
    c->rope_style = TFM_ROPE_HALVES;
    c->block = TFM_NN_BLOCK_PRE_POST;
    c->ffn = TFM_NN_FFN_GEGLU;
    c->softcap = 2;
    c->logit_softcap = 3;
    c->embedding_scale = 2.449489742783178;
    c->each.window = 2;
    c->qk_norm = 1;
}

static void encoder(struct tfm_nn_decoder *c)
{
    c->bidirectional = 1;
    c->block = TFM_NN_BLOCK_POST;
    c->norm = TFM_NN_NORM_LAYER;
    c->ffn = TFM_NN_FFN_GELU;
    c->position = TFM_NN_POSITION_SINUSOIDAL;
    c->no_final_norm = 1;
    with_biases(c);
}

static void t5(struct tfm_nn_decoder *c)
{
    c->kv_heads = 1;
    c->position = TFM_NN_POSITION_RELATIVE;
    c->ffn = TFM_NN_FFN_RELU;
    c->scale = 1;
}

static void glu(struct tfm_nn_decoder *c)
{
    c->position = TFM_NN_POSITION_NONE;
    c->ffn = TFM_NN_FFN_GLU;
    c->norm = TFM_NN_NORM_NONE;
}

static void silu(struct tfm_nn_decoder *c)
{
    c->ffn = TFM_NN_FFN_SILU;
}

const char *training_stack(int i, enum tfm_dtype dtype, struct tfm_nn_decoder *config)
{
    static const struct {
        const char *name;
        void (*set)(struct tfm_nn_decoder *config);
    } rows[TRAINING_STACKS] = {{"Llama, tied", llama}, {"GPT-2", gpt2}, {"Gemma 2", gemma2},
                               {"encoder", encoder},   {"T5, MQA", t5}, {"GLU without", glu},
                               {"SiLU", silu}};

    *config = small(dtype);
    rows[i].set(config);
    return rows[i].name;
}
