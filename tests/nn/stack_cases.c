/* SPDX-License-Identifier: MIT
 * Stacks against plain loops in double: any norm with any FFN with any positions in any kind of block,
 * and the settings of the models that the config is for. Faults caught: residual, norm and sublayer in
 * another order, a setting that is ignored or goes to the wrong layer, a bias that is left out. */
#include "tests/nn/stack_cases.h"

#include "tests/nn/naive.h"

enum { VOCAB = 11, WIDTH = 12, N = 7, NORMS = 3, FFNS = 7, POSITIONS = 5, BLOCKS = 3 };

static const int32_t ids[N] = {3, 1, 4, 1, 5, 9, 2};

static const struct tfm_nn_decoder_layer biased = {
    .q_bias = 1,
    .k_bias = 1,
    .v_bias = 1,
    .o_bias = 1,
    .gate_bias = 1,
    .up_bias = 1,
    .down_bias = 1,
};

/* 3 query heads a kv head, d free of D / H, an F that divides nothing. */
static struct tfm_nn_decoder small(void)
{
    return (struct tfm_nn_decoder){
        .vocab = VOCAB,
        .width = WIDTH,
        .layers = 2,
        .heads = 6,
        .kv_heads = 2,
        .head_dim = 4,
        .ffn_width = 13,
        .eps = 1e-5,
        .positions = 16,
        .slots = 1,
        .cells = 16,
        .cache = TFM_DTYPE_F32,
        .relative = {.buckets = 8, .max_distance = 5},
    };
}

static void check(const struct tfm_nn_decoder *config, const char *what)
{
    static double got[N * VOCAB], want[N * VOCAB];
    struct tfm_error err = {0};
    struct net net;

    net_begin(&net, N, 1);
    tfm_nn_decoder(net.graph, config);
    ck_assert_msg(tfm_graph_check(net.graph, &err) == TFM_STATUS_OK, "%s: %s", what, err.text);
    net_disturb(&net);
    net_compile(&net, 1);
    net_put_i32(&net, "ids", 0, N, ids);
    if (tfm_graph_find(net.graph, "pos"))
        net_put_i32(&net, "pos", 0, N, (const int32_t[]){0, 1, 2, 3, 4, 5, 6});
    net_run_n(&net, N, 0);
    net_get(&net, "logits", 0, N * VOCAB, got);
    naive_decoder(&net, config, ids, N, want);
    net_compare(got, want, N * VOCAB, 2e-5, what);
    net_end(&net);
}

/* Every combination, a block and a kind of positions in each test; on other backends than the reference
 * every fifth, which still pairs each kind with each other. */
START_TEST(any_norm_any_ffn_any_positions)
{
    const int block = _i / POSITIONS, position = _i % POSITIONS;

    for (int norm = 0; norm < NORMS; norm++)
        for (int ffn = 0; ffn < FFNS; ffn++) {
            struct tfm_nn_decoder config = small();
            char what[80];
            if (strcmp(net_backend(), "reference") && (block + 2 * position + norm + ffn) % 5)
                continue;
            config.block = (enum tfm_nn_block_kind)block;
            config.position = (enum tfm_nn_position_kind)position;
            config.norm = (enum tfm_nn_norm_kind)norm;
            config.ffn = (enum tfm_nn_ffn_kind)ffn;
            config.layers = 1;
            config.tied = ffn % 2;
            config.each = ffn % 3 == 0 ? biased : (struct tfm_nn_decoder_layer){0};
            snprintf(what, sizeof what, "block %d, positions %d, norm %d, ffn %d", block, position,
                     norm, ffn);
            check(&config, what);
        }
}
END_TEST

/* What each model family sets, away from small(). */
static void gpt2(struct tfm_nn_decoder *c)
{
    c->kv_heads = c->heads;
    c->head_dim = 2;
    c->norm = TFM_NN_NORM_LAYER;
    c->ffn = TFM_NN_FFN_GELU_TANH;
    c->position = TFM_NN_POSITION_LEARNED;
    c->tied = 1;
    c->each = biased;
}

static void llama(struct tfm_nn_decoder *c)
{
    c->rope.theta = 500000;
}

static void qwen2(struct tfm_nn_decoder *c)
{
    c->rope_style = TFM_ROPE_HALVES;
    c->rope.theta = 1e6;
    c->tied = 1;
    c->each = (struct tfm_nn_decoder_layer){.q_bias = 1, .k_bias = 1, .v_bias = 1};
}

static void qwen3(struct tfm_nn_decoder *c)
{
    c->rope_style = TFM_ROPE_HALVES;
    c->qk_norm = 1;
}

static void gemma2(struct tfm_nn_decoder *c)
{
    static const struct tfm_nn_decoder_layer layers[2] = {{.window = 3}, {.window = 0}};
    c->rope_style = TFM_ROPE_HALVES;
    c->block = TFM_NN_BLOCK_PRE_POST;
    c->ffn = TFM_NN_FFN_GEGLU;
    c->head_dim = 8;
    c->scale = 0.25;
    c->softcap = 2;
    c->logit_softcap = 3;
    c->embedding_scale = 3.4641016151377544; /* sqrt(D) */
    c->tied = 1;
    c->layer = layers;
}

static void encoder(struct tfm_nn_decoder *c)
{
    c->slots = c->cells = 0;
    c->bidirectional = 1;
    c->block = TFM_NN_BLOCK_POST;
    c->norm = TFM_NN_NORM_LAYER;
    c->ffn = TFM_NN_FFN_GELU;
    c->position = TFM_NN_POSITION_SINUSOIDAL;
    c->no_final_norm = 1;
    c->each = biased;
}

static void t5_encoder(struct tfm_nn_decoder *c)
{
    c->slots = c->cells = 0;
    c->bidirectional = 1;
    c->position = TFM_NN_POSITION_RELATIVE;
    c->ffn = TFM_NN_FFN_RELU;
    c->scale = 1;
}

static void t5_decoder(struct tfm_nn_decoder *c)
{
    c->position = TFM_NN_POSITION_RELATIVE;
    c->ffn = TFM_NN_FFN_GEGLU;
    c->scale = 1;
}

static void partial_rotation(struct tfm_nn_decoder *c)
{
    c->head_dim = 6;
    c->rope_dims = 4;
    c->rope_style = TFM_ROPE_HALVES;
}

static void windowed_encoder(struct tfm_nn_decoder *c)
{
    c->slots = c->cells = 0;
    c->bidirectional = 1;
    c->each.window = 2;
}

static void mqa(struct tfm_nn_decoder *c)
{
    c->kv_heads = 1;
}

static void odd_sinusoidal(struct tfm_nn_decoder *c)
{
    c->width = 9;
    c->position = TFM_NN_POSITION_SINUSOIDAL;
}

static void no_layers(struct tfm_nn_decoder *c)
{
    c->layers = 0;
}

START_TEST(models)
{
    static const struct {
        const char *name;
        void (*set)(struct tfm_nn_decoder *config);
    } rows[] = {
        {"GPT-2", gpt2},
        {"Llama", llama},
        {"Qwen 2", qwen2},
        {"Qwen 3", qwen3},
        {"Gemma 2", gemma2},
        {"encoder of 2017", encoder},
        {"T5 encoder", t5_encoder},
        {"T5 decoder, without cross attention", t5_decoder},
        {"4 of 6 elements rotated", partial_rotation},
        {"encoder with a window", windowed_encoder},
        {"MQA", mqa},
        {"sinusoidal with an odd width", odd_sinusoidal},
        {"no layers", no_layers},
    };
    struct tfm_nn_decoder config = small();

    rows[_i].set(&config);
    check(&config, rows[_i].name);
}
END_TEST

static Suite *make(void)
{
    Suite *suite = suite_create("stacks");
    TCase *tcase = net_case(suite, "stacks");
    tcase_add_loop_test(tcase, any_norm_any_ffn_any_positions, 0, BLOCKS * POSITIONS);
    tcase_add_loop_test(tcase, models, 0, 13);
    return suite;
}

int stack_cases_run(const char *backend)
{
    return net_main(backend, make);
}
