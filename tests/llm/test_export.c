/* SPDX-License-Identifier: MIT
 * Decoders in memory, written as Llamas: the logits of the files are those of the graph over the weights. Decoders that
 * no Llama is: test_export_own.c. */
#include "tests/llm/export_scene.h"

/* ---- Llamas ---- */

static const struct {
    int64_t heads, kv_heads, head_dim;
    enum tfm_rope_style style;
    int untied, biases;
    double theta, eps;
} llamas[] = {
    {4, 2, 16, TFM_ROPE_ADJACENT, 0, 0, 0, 1e-5},
    {4, 2, 16, TFM_ROPE_HALVES, 0, 0, 0, 1e-5},
    {6, 3, 10, TFM_ROPE_HALVES, 1, 1, 500, 1e-6},
    {6, 3, 10, TFM_ROPE_ADJACENT, 1, 1, 500, 1e-6},
    {4, 4, 32, TFM_ROPE_ADJACENT, 1, 0, 100000, .01},
    {8, 1, 2, TFM_ROPE_HALVES, 0, 1, 10000, 1e-5},
};

/* Catches: rows of q or k (or their biases) in the other style's order, weights under each other's names, a key that
 * is left out or holds another number, a head that is lost. */
START_TEST(logits_of_llamas)
{
    struct tfm_nn_decoder config = small();
    double logits[TINY_VOCAB];
    struct net net;

    config.heads = llamas[_i].heads;
    config.kv_heads = llamas[_i].kv_heads;
    config.head_dim = llamas[_i].head_dim;
    config.rope_style = llamas[_i].style;
    config.tied = !llamas[_i].untied;
    config.rope.theta = llamas[_i].theta;
    config.eps = llamas[_i].eps;
    config.each.q_bias = config.each.k_bias = config.each.v_bias = config.each.o_bias =
        llamas[_i].biases;
    make(&net, &config, logits);
    const struct tfm_export trained = of(&net, &config);
    to_gguf(&trained, TFM_DTYPE_F32);
    to_folder(&trained, TFM_DTYPE_F32);
    ck_assert_double_le(distance("m.gguf", logits), 1e-4);
    ck_assert_double_le(distance("f", logits), 1e-4);
    net_end(&net);
}
END_TEST

/* What a peer reads beside what we do. Catches: a file without them. */
START_TEST(keys)
{
    static const struct {
        const char *key;
        uint64_t value;
    } counts[] = {{"llama.vocab_size", TINY_VOCAB},   {"llama.context_length", 32},
                  {"llama.embedding_length", WIDTH},  {"llama.block_count", 2},
                  {"llama.attention.head_count", 4},  {"llama.attention.head_count_kv", 2},
                  {"llama.feed_forward_length", 96},  {"llama.attention.key_length", 16},
                  {"llama.rope.dimension_count", 16}, {"general.file_type", 7}};
    struct tfm_nn_decoder config = small();
    struct tfm_gguf *gguf = NULL, *words = NULL;
    struct tfm_gguf_array a, b;
    double logits[TINY_VOCAB];
    struct tfm_text name;
    struct net net;

    make(&net, &config, logits);
    const struct tfm_export trained = of(&net, &config);
    to_gguf(&trained, TFM_DTYPE_Q8_0);
    ck_assert_int_eq(tfm_gguf_open("m.gguf", &gguf, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_gguf_open("words.gguf", &words, NULL), TFM_STATUS_OK);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        uint64_t value = 0;
        ck_assert_int_eq(tfm_gguf_uint(gguf, counts[i].key, &value, NULL), TFM_STATUS_OK);
        ck_assert_msg(value == counts[i].value, "%s", counts[i].key);
    }
    ck_assert_int_eq(tfm_gguf_string(gguf, "general.name", &name, NULL), TFM_STATUS_OK);
    ck_assert(name.size == 5 && memcmp(name.data, "small", 5) == 0);
    ck_assert_int_eq(tfm_gguf_get_array(gguf, "tokenizer.ggml.tokens", &a, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_gguf_get_array(words, "tokenizer.ggml.tokens", &b, NULL), TFM_STATUS_OK);
    ck_assert_uint_eq(a.count, b.count);
    ck_assert_ptr_null(tfm_gguf_find(gguf, "output.weight"));
    tfm_gguf_close(gguf);
    tfm_gguf_close(words);
    net_end(&net);
}
END_TEST

static const struct {
    enum tfm_dtype dtype;
    int folder;
    double bound;
} types[] = {
    {TFM_DTYPE_F16, 1, 0.05}, {TFM_DTYPE_BF16, 1, 0.2}, {TFM_DTYPE_F16, 0, 0.05},
    {TFM_DTYPE_BF16, 0, 0.2}, {TFM_DTYPE_Q8_0, 0, 1},   {TFM_DTYPE_Q4_1, 0, 8},
    {TFM_DTYPE_Q4_0, 0, 8},
};

/* Catches: a type that is written but not read, and one that is not rounded to. */
START_TEST(other_types)
{
    struct tfm_nn_decoder config = small();
    double logits[TINY_VOCAB];
    struct net net;

    make(&net, &config, logits);
    const struct tfm_export trained = of(&net, &config);
    if (types[_i].folder)
        to_folder(&trained, types[_i].dtype);
    else
        to_gguf(&trained, types[_i].dtype);
    const double far = distance(types[_i].folder ? "f" : "m.gguf", logits);
    ck_assert_double_le(far, types[_i].bound);
    ck_assert_double_gt(far, 1e-6);
    net_end(&net);
}
END_TEST

/* Factors of rotation stand in a GGUF file and in no folder. Catches: factors that are lost on the way. */
START_TEST(factors)
{
    static const float factors[8] = {1, 1.5f, 2, 3, 4, 5, 6, 8};
    struct tfm_nn_decoder config = small();
    double logits[TINY_VOCAB];
    struct tfm_error err = {0};
    struct net net;

    config.rope.scaling = TFM_NN_ROPE_SCALING_FACTORS;
    config.rope.factors = factors;
    make(&net, &config, logits);
    const struct tfm_export trained = of(&net, &config);
    to_gguf(&trained, TFM_DTYPE_F32);
    ck_assert_double_le(distance("m.gguf", logits), 1e-4);
    ck_assert_int_eq(tfm_export_to_folder(&trained, "f", TFM_DTYPE_F32, &err),
                     TFM_STATUS_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.text, "factors"));
    net_end(&net);
}
END_TEST

/* Layers of a model that was opened stand in an array. Catches: the array that is not read. */
START_TEST(layers_in_an_array)
{
    struct tfm_nn_decoder_layer layers[2] = {{.q = TFM_DTYPE_F16, .q_bias = 1, .o_bias = 1},
                                             {.k = TFM_DTYPE_F32, .q_bias = 1, .o_bias = 1}};
    struct tfm_nn_decoder config = small();
    double logits[TINY_VOCAB];
    struct tfm_error err = {0};
    struct net net;

    config.each.q_bias = config.each.o_bias = 1;
    make(&net, &config, logits);
    config.layer = layers;
    const struct tfm_export trained = of(&net, &config);
    to_gguf(&trained, TFM_DTYPE_F32);
    ck_assert_double_le(distance("m.gguf", logits), 1e-4);
    /* a Hugging Face folder knows biases on all four or on none */
    to_folder(&trained, TFM_DTYPE_F32);
    ck_assert(file_has("f/config.json", "\"model_type\": \"tfm\""));
    ck_assert_double_le(distance("f", logits), 1e-4);
    layers[1].q_bias = 0;
    ck_assert_int_eq(tfm_export_to_folder(&trained, "f", TFM_DTYPE_F32, &err),
                     TFM_STATUS_UNSUPPORTED);
    ck_assert_msg(strstr(err.text, "layer 1") != NULL, "%s", err.text);
    net_end(&net);
}
END_TEST

/* ---- what is wrong ---- */

/* Catches: a file that is written half or over an old one, an error that does not say which. */
START_TEST(faults)
{
    struct tfm_nn_decoder config = small();
    double logits[TINY_VOCAB];
    struct tfm_error err = {0};
    struct net net;

    make(&net, &config, logits);
    struct tfm_export trained = of(&net, &config);
    ck_assert_int_eq(tfm_export_to_gguf(&trained, "m.gguf", TFM_DTYPE_I32, &err), TFM_STATUS_DTYPE);
    ck_assert_int_eq(tfm_export_to_folder(&trained, "f", TFM_DTYPE_Q8_0, &err), TFM_STATUS_DTYPE);
    trained.tokenizer = "nowhere.gguf";
    ck_assert_int_eq(tfm_export_to_gguf(&trained, "m.gguf", TFM_DTYPE_F32, &err), TFM_STATUS_IO);
    trained.tokenizer = "words.gguf";
    ck_assert_int_eq(tfm_export_to_gguf(&trained, "nowhere/m.gguf", TFM_DTYPE_F32, &err),
                     TFM_STATUS_IO);

    config.layers = 3;
    ck_assert_int_eq(tfm_export_to_gguf(&trained, "m.gguf", TFM_DTYPE_F32, &err),
                     TFM_STATUS_NOT_FOUND);
    ck_assert_msg(strstr(err.text, "\"blk.2.") && strstr(err.text, "m.gguf"), "%s", err.text);
    config.layers = 2;
    config.ffn_width = 64;
    ck_assert_int_eq(tfm_export_to_folder(&trained, "f", TFM_DTYPE_F32, &err), TFM_STATUS_SHAPE);
    ck_assert_msg(strstr(err.text, "\"blk.0.ffn.gate.weight\"") != NULL, "%s", err.text);
    config.ffn_width = 96;
    config.heads = 3; /* which the kv heads do not divide */
    ck_assert_int_eq(tfm_export_to_gguf(&trained, "m.gguf", TFM_DTYPE_F32, &err), TFM_STATUS_SHAPE);
    ck_assert_int_ne(access("m.gguf", F_OK), 0);
    ck_assert_int_ne(access("f", F_OK), 0);
    net_end(&net);

    config = small();
    config.vocab = 100;
    config.ffn_width = 40;
    net_begin(&net, 1, 1);
    tfm_nn_decoder(net.graph, &config);
    net_compile(&net, 1);
    trained = of(&net, &config);
    ck_assert_int_eq(tfm_export_to_gguf(&trained, "m.gguf", TFM_DTYPE_F32, &err),
                     TFM_STATUS_FORMAT);
    ck_assert_msg(strstr(err.text, "259 tokens") && strstr(err.text, "vocab is 100"), "%s",
                  err.text);
    net_end(&net);

    config.vocab = TINY_VOCAB;
    net_begin(&net, 1, 1);
    tfm_nn_decoder(net.graph, &config);
    net_compile(&net, 1);
    trained = of(&net, &config);
    ck_assert_int_eq(tfm_export_to_gguf(&trained, "m.gguf", TFM_DTYPE_Q8_0, &err),
                     TFM_STATUS_SHAPE);
    ck_assert_msg(strstr(err.text, "rows of 40") != NULL, "%s", err.text);
    net_end(&net);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("export");
    TCase *tcase = net_case(suite, "export");

    test_backend = "reference";
    tcase_add_checked_fixture(tcase, enter_folder, leave_folder);
    tcase_add_loop_test(tcase, logits_of_llamas, 0, (int)(sizeof llamas / sizeof *llamas));
    tcase_add_test(tcase, keys);
    tcase_add_loop_test(tcase, other_types, 0, (int)(sizeof types / sizeof *types));
    tcase_add_test(tcase, factors);
    tcase_add_test(tcase, layers_in_an_array);
    tcase_add_test(tcase, faults);
    return suite;
}

int main(void)
{
    return net_main("reference", make_suite);
}
