/* SPDX-License-Identifier: MIT
 * Worked numbers, part 1: how many values layers own, and how many bytes a cache takes. Faults caught: a
 * layer that declares a weight too many (a W3 without a gate, a bias nobody asked for), a tied head that
 * is counted twice, a cache that holds repeated heads, initial values with another spread. */
#include <math.h>

#include "tests/nn/net.h"
#include "tests/nn/worked_cases.h"

static struct tfm_graph *graph;

static void setup(void)
{
    ck_assert_int_eq(tfm_graph_create(&graph, NULL), TFM_STATUS_OK);
}

static void teardown(void)
{
    tfm_graph_destroy(graph);
}

static enum tfm_status add_count(void *context, const struct tfm_tensor *tensor)
{
    *(int64_t *)context += (int64_t)net_elements(tensor);
    return TFM_STATUS_OK;
}

static int64_t parameters(void)
{
    struct tfm_error err = {0};
    int64_t n = 0;

    ck_assert_msg(tfm_graph_check(graph, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_int_eq(tfm_graph_parameters(graph, add_count, &n), TFM_STATUS_OK);
    return n;
}

static struct tfm_tensor *activations(int64_t width)
{
    return tfm_graph_input(graph, "x", TFM_DTYPE_F32, 2, (int64_t[]){0, width});
}

/* ---- single layers ---- */

static void one_embedding(int64_t D, int64_t V)
{
    struct tfm_tensor *ids = tfm_graph_input(graph, "ids", TFM_DTYPE_I32, 1, (int64_t[]){0});
    tfm_nn_embedding(graph, "embedding", ids, V, D, TFM_DTYPE_F32);
}

static void one_linear(int64_t D, int64_t F)
{
    tfm_nn_linear(graph, "linear", activations(D), F, TFM_DTYPE_F32, 0);
}

static void one_layer_norm(int64_t D, int64_t F)
{
    (void)F;
    tfm_nn_layer_norm(graph, "norm", activations(D), 1e-5);
}

static void one_rms_norm(int64_t D, int64_t F)
{
    (void)F;
    tfm_nn_rms_norm(graph, "norm", activations(D), 1e-5);
}

static void one_ffn(int64_t D, int64_t F, enum tfm_nn_ffn_kind kind)
{
    const struct tfm_nn_ffn ffn = {.kind = kind, .width = F};
    tfm_nn_ffn(graph, "ffn", activations(D), &ffn);
}

static void one_relu(int64_t D, int64_t F)
{
    one_ffn(D, F, TFM_NN_FFN_RELU);
}

static void one_swiglu(int64_t D, int64_t F)
{
    one_ffn(D, F, TFM_NN_FFN_SWIGLU);
}

static void one_silu(int64_t D, int64_t F)
{
    one_ffn(D, F, TFM_NN_FFN_SILU);
    ck_assert_msg(!tfm_graph_find(graph, "ffn.gate.weight"), "use_swiglu = false owns no W3");
}

/* q, k, v, o of D x D each */
static void one_attention(int64_t D, int64_t heads)
{
    const struct tfm_nn_attention attention = {
        .heads = heads, .kv_heads = heads, .head_dim = D / heads};
    tfm_nn_attention(graph, "attn", activations(D), &attention);
}

static const struct {
    const char *name;
    void (*build)(int64_t D, int64_t F);
    int64_t D, F, parameters;
} layers[] = {
    {"embedding 18,017 x 768", one_embedding, 768, 18017, 13837056},
    {"linear 768 -> 3072", one_linear, 768, 3072, 768 * 3072},
    {"LayerNorm holds 2 D", one_layer_norm, 768, 0, 2 * 768},
    {"RMSNorm holds D", one_rms_norm, 768, 0, 768},
    {"FFN 2 D F at F = 3072", one_relu, 768, 3072, 4718592},
    {"FFN-SiLU 2 D F at F = 3072", one_silu, 768, 3072, 4718592},
    {"SwiGLU 3 D F at F = 2048: as the FFN", one_swiglu, 768, 2048, 4718592},
    {"SwiGLU 3 D F at F = 3072", one_swiglu, 768, 3072, 7077888},
    {"MHA: 4 D^2", one_attention, 768, 12, 4 * 768 * 768},
};

START_TEST(layer_holds)
{
    layers[_i].build(layers[_i].D, layers[_i].F);
    ck_assert_msg(parameters() == layers[_i].parameters, "%s: %lld", layers[_i].name,
                  (long long)parameters());
}
END_TEST

START_TEST(ffn_width_of)
{
    static const struct {
        int64_t width, multiple, ffn;
    } rows[] = {{768, 0, 2048},     {768, 64, 2048},     {576, 64, 1536},   {4096, 64, 10944},
                {4096, 256, 11008}, {8192, 4096, 24576}, {3, 1, 8},         {1, 64, 64},
                {0, 64, 0},         {768, -1, 0},        {INT64_MAX, 64, 0}};
    ck_assert_int_eq(tfm_nn_ffn_width(rows[_i].width, rows[_i].multiple), rows[_i].ffn);
}
END_TEST

/* ---- whole models ---- */

static const struct tfm_nn_decoder gpt2 = {
    .vocab = 50257,
    .width = 768,
    .layers = 12,
    .heads = 12,
    .kv_heads = 12,
    .head_dim = 64,
    .ffn_width = 3072,
    .eps = 1e-5,
    .positions = 1024,
    .slots = 1,
    .cells = 1024,
    .tied = 1,
    .norm = TFM_NN_NORM_LAYER,
    .ffn = TFM_NN_FFN_GELU_TANH,
    .position = TFM_NN_POSITION_LEARNED,
    .each = {.q_bias = 1, .k_bias = 1, .v_bias = 1, .o_bias = 1, .up_bias = 1, .down_bias = 1},
};

static const struct tfm_nn_decoder smollm2 = {
    .vocab = 49152,
    .width = 576,
    .layers = 30,
    .heads = 9,
    .kv_heads = 3,
    .head_dim = 64,
    .ffn_width = 1536,
    .eps = 1e-5,
    .positions = 8192,
    .rope = {.theta = 100000},
    .slots = 1,
    .cells = 8192,
    .tied = 1,
};

/* Values of parameters that a linear reads as its weight: all of them, or without embedding tables. */
static int64_t linear_values(int with_tied)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < tfm_graph_node_count(graph); i++) {
        const struct tfm_node *node = tfm_graph_node(graph, i);
        const int tied =
            strcmp(node->inputs[1] ? node->inputs[1]->name : "", "token_embd.weight") == 0;
        if (node->op == TFM_OP_LINEAR && (with_tied || !tied))
            n += (int64_t)net_elements(node->inputs[1]);
    }
    return n;
}

START_TEST(model_holds)
{
    static const struct {
        const char *name;
        const struct tfm_nn_decoder *config;
        int64_t parameters, linear;
        double percent, percent_with_tied;
    } rows[] = {
        {"GPT-2 124M", &gpt2, 124439808, 84934656, 68.3, 99.3},
        {"SmolLM2-135M", &smollm2, 134515008, 106168320, 78.9, 100.0},
    };
    tfm_nn_decoder(graph, rows[_i].config);
    const double all = (double)parameters();
    ck_assert_msg(parameters() == rows[_i].parameters, "%s: %lld", rows[_i].name,
                  (long long)parameters());
    ck_assert_int_eq(linear_values(0), rows[_i].linear);
    ck_assert_double_le(fabs(100 * (double)linear_values(0) / all - rows[_i].percent), 0.05);
    ck_assert_double_le(fabs(100 * (double)linear_values(1) / all - rows[_i].percent_with_tied),
                        0.05);
}
END_TEST

/* ---- caches, on the backend ---- */

START_TEST(cache_of)
{
    enum { CELLS = 32 };
    static const struct {
        const char *name;
        int64_t heads, kv_heads;
        size_t bytes; /* a token and layer */
    } rows[] = {{"9/3 heads, d 64, F16", 9, 3, 768}, {"MHA", 9, 9, 2304}, {"MQA", 9, 1, 256}};
    const struct tfm_nn_attention attention = {.heads = rows[_i].heads,
                                               .kv_heads = rows[_i].kv_heads,
                                               .head_dim = 64,
                                               .slots = 1,
                                               .cells = CELLS,
                                               .cache = TFM_DTYPE_F16};
    struct tfm_plan_summary summary;
    struct net net;

    net_begin(&net, 4, 1);
    struct tfm_tensor *x = net_input(&net, "x", TFM_DTYPE_F32, 32, 0);
    net_output(&net, tfm_nn_attention(net.graph, "attn", x, &attention));
    net_compile(&net, 1);
    tfm_plan_summarize(net.plan, &summary);
    ck_assert_msg(summary.state_bytes == rows[_i].bytes * CELLS, "%s: %zu bytes for %d tokens",
                  rows[_i].name, summary.state_bytes, CELLS);
    net_end(&net);
}
END_TEST

/* ---- initial values ---- */

START_TEST(init_spread)
{
    /* rows of weight [512, 1536]: sigma = sqrt(2 / 2048); a table has std 1 */
    static const struct {
        const char *name, *parameter;
        double sigma;
    } rows[] = {{"linear", "linear.weight", 0.03125}, {"embedding", "embedding.weight", 1}};
    struct net net;
    double sum = 0, square = 0, most = 0;

    net_begin(&net, 1, 1);
    struct tfm_tensor *ids = net_input(&net, "ids", TFM_DTYPE_I32, 0, 0);
    struct tfm_tensor *x = tfm_nn_embedding(net.graph, "embedding", ids, 512, 1536, TFM_DTYPE_F32);
    net_output(&net, tfm_nn_linear(net.graph, "linear", x, 512, TFM_DTYPE_F32, 0));
    net_compile(&net, 20 + (uint64_t)_i);
    double *values = net_weight(&net, rows[_i].parameter);
    const size_t n = 512 * 1536;
    for (size_t i = 0; i < n; i++) {
        sum += values[i];
        square += values[i] * values[i];
        most = fmax(most, fabs(values[i]));
    }
    free(values);
    const double mean = sum / (double)n / rows[_i].sigma;
    const double std = sqrt(square / (double)n) / rows[_i].sigma;
    /* standard errors: 0.0011 and 0.0008 */
    ck_assert_msg(fabs(mean) < 0.005, "%s: mean %g sigma", rows[_i].name, mean);
    ck_assert_msg(fabs(std - 0.98658) < 0.004, "%s: std %g sigma", rows[_i].name, std);
    ck_assert_msg(most <= 3 * rows[_i].sigma && most > 2.99 * rows[_i].sigma,
                  "%s: largest %g sigma", rows[_i].name, most / rows[_i].sigma);
    net_end(&net);
}
END_TEST

void worked_counts_add(Suite *suite)
{
    TCase *tcase = net_case(suite, "what layers hold");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, layer_holds, 0, (int)(sizeof layers / sizeof *layers));
    tcase_add_loop_test(tcase, ffn_width_of, 0, 11);
    tcase_add_loop_test(tcase, model_holds, 0, 2);
    tcase = net_case(suite, "caches and initial values");
    tcase_add_loop_test(tcase, cache_of, 0, 3);
    tcase_add_loop_test(tcase, init_spread, 0, 2);
}
