/* SPDX-License-Identifier: MIT
 * Decoders in memory, written as models: the logits of the files are those of the graph over the weights; decoders
 * that no Llama is go into folders as they are, and into no GGUF file. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tfm/llm.h>

#include "tests/folder.h"
#include "tests/llm/session_logits.h"
#include "tests/nn/net.h"

enum { N = 9, WIDTH = 64 };

static const int32_t ids[N] = {256, 72, 101, 108, 108, 111, 32, 119, 111};

static const char *const leftovers[] = {
    "words.gguf", "m.gguf", "f/config.json", "f/tokenizer.json", "f/model.safetensors", "f"};

static void enter_folder(void)
{
    struct tiny_llama tiny = tiny_llama_default();

    folder_enter();
    tiny_llama_write(&tiny, "words.gguf"); /* for its tokenizer */
}

static void leave_folder(void)
{
    folder_leave(leftovers, sizeof leftovers / sizeof *leftovers);
}

static struct tfm_nn_decoder small(void)
{
    return (struct tfm_nn_decoder){
        .vocab = TINY_VOCAB,
        .width = WIDTH,
        .layers = 2,
        .heads = 4,
        .kv_heads = 2,
        .head_dim = 16,
        .ffn_width = 96,
        .eps = 1e-5,
        .positions = 32,
        .tied = 1,
        .relative = {.buckets = 8, .max_distance = 16},
    };
}

/* The decoder with random weights, and the logits of its last row. */
static void make(struct net *net, const struct tfm_nn_decoder *config, double *logits)
{
    static const int32_t pos[N] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    struct tfm_error err = {0};

    net_begin(net, N, 1);
    tfm_nn_decoder(net->graph, config);
    ck_assert_msg(tfm_graph_check(net->graph, &err) == TFM_STATUS_OK, "%s", err.text);
    net_disturb(net);
    net_compile(net, 1);
    net_put_i32(net, "ids", 0, N, ids);
    if (tfm_graph_find(net->graph, "pos"))
        net_put_i32(net, "pos", 0, N, pos);
    net_run_n(net, N, 0);
    net_get(net, "logits", (size_t)(N - 1) * TINY_VOCAB, TINY_VOCAB, logits);
}

static struct tfm_export of(const struct net *net, const struct tfm_nn_decoder *config)
{
    return (struct tfm_export){config, net->weights, "words.gguf", "small"};
}

/* Largest distance of the file's logits from these. */
static double distance(const char *path, const double *logits)
{
    float got[TINY_VOCAB];
    double most = 0;

    session_logits(path, ids, N, got);
    for (int i = 0; i < TINY_VOCAB; i++) {
        const double far = fabs((double)got[i] - logits[i]);
        most = far > most || isnan(far) ? far : most;
    }
    return most;
}

static void to_gguf(const struct tfm_export *trained, enum tfm_dtype dtype)
{
    struct tfm_error err = {0};
    ck_assert_msg(tfm_export_to_gguf(trained, "m.gguf", dtype, &err) == TFM_STATUS_OK, "%s",
                  err.text);
}

static void to_folder(const struct tfm_export *trained, enum tfm_dtype dtype)
{
    struct tfm_error err = {0};
    ck_assert_msg(tfm_export_to_folder(trained, "f", dtype, &err) == TFM_STATUS_OK, "%s", err.text);
}

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

/* ---- others ---- */

static void set_norm(struct tfm_nn_decoder *c)
{
    c->norm = TFM_NN_NORM_LAYER;
}
static void set_block(struct tfm_nn_decoder *c)
{
    c->block = TFM_NN_BLOCK_POST;
}
static void set_final(struct tfm_nn_decoder *c)
{
    c->no_final_norm = 1;
}
static void set_ffn(struct tfm_nn_decoder *c)
{
    c->ffn = TFM_NN_FFN_RELU;
}
static void set_learned(struct tfm_nn_decoder *c)
{
    c->position = TFM_NN_POSITION_LEARNED;
}
static void set_sinusoidal(struct tfm_nn_decoder *c)
{
    c->position = TFM_NN_POSITION_SINUSOIDAL;
}
static void set_relative(struct tfm_nn_decoder *c)
{
    c->position = TFM_NN_POSITION_RELATIVE;
}
static void set_none(struct tfm_nn_decoder *c)
{
    c->position = TFM_NN_POSITION_NONE;
}
static void set_up_bias(struct tfm_nn_decoder *c)
{
    c->each.up_bias = 1;
}
static void set_window(struct tfm_nn_decoder *c)
{
    c->each.window = 4;
}
static void set_qk_norm(struct tfm_nn_decoder *c)
{
    c->qk_norm = 1;
}
static void set_scale(struct tfm_nn_decoder *c)
{
    c->scale = .5;
}
static void set_softcap(struct tfm_nn_decoder *c)
{
    c->softcap = 20;
}
static void set_logit_softcap(struct tfm_nn_decoder *c)
{
    c->logit_softcap = 30;
}
static void set_embedding_scale(struct tfm_nn_decoder *c)
{
    c->embedding_scale = 8;
}
static void set_rope_dims(struct tfm_nn_decoder *c)
{
    c->rope_dims = 8;
}
static void set_bidirectional(struct tfm_nn_decoder *c)
{
    c->bidirectional = 1;
}
static void set_linear(struct tfm_nn_decoder *c)
{
    c->rope.scaling = TFM_NN_ROPE_SCALING_LINEAR;
    c->rope.factor = 2;
}
static void set_two(struct tfm_nn_decoder *c)
{
    set_up_bias(c);
    set_norm(c);
}

static const struct {
    void (*set)(struct tfm_nn_decoder *config);
    const char *says, *in_json;
} others[] = {
    {set_norm, "\"norm\" is \"layer\"", "\"norm\": \"layer\""},
    {set_block, "\"block\" is \"post\"", "\"block\": \"post\""},
    {set_final, "\"no_final_norm\" is true", "\"no_final_norm\": true"},
    {set_ffn, "\"ffn\" is \"relu\"", "\"ffn\": \"relu\""},
    {set_learned, "\"position\" is \"learned\"", "\"position\": \"learned\""},
    {set_sinusoidal, "\"position\" is \"sinusoidal\"", "\"position\": \"sinusoidal\""},
    {set_relative, "\"position\" is \"relative\"", "\"relative_buckets\": 8"},
    {set_none, "\"position\" is \"none\"", "\"position\": \"none\""},
    {set_up_bias, "\"up_bias\" is true", "\"up_bias\": true"},
    {set_window, "\"window\" is 4", "\"window\": 4"},
    {set_qk_norm, "\"qk_norm\" is true", "\"qk_norm\": true"},
    {set_scale, "\"attention_scale\" is 0.5", "\"attention_scale\": 0.5"},
    {set_softcap, "\"attention_softcap\" is 20", "\"attention_softcap\": 20"},
    {set_logit_softcap, "\"logit_softcap\" is 30", "\"logit_softcap\": 30"},
    {set_embedding_scale, "\"embedding_scale\" is 8", "\"embedding_scale\": 8"},
    {set_rope_dims, "\"rope_dims\" is 8", "\"rope_dims\": 8"},
    {set_bidirectional, "\"bidirectional\" is true", "\"bidirectional\": true"},
    {set_linear, "\"rope_scaling\" is \"linear\"", "\"rope_factor\": 2"},
    {set_two, "\"norm\" is \"layer\"", "\"up_bias\": true"},
};

static int file_has(const char *path, const char *text)
{
    static char data[1 << 16];
    FILE *file = fopen(path, "rb");

    ck_assert_ptr_nonnull(file);
    const size_t size = fread(data, 1, sizeof data - 1, file);
    fclose(file);
    data[size] = '\0';
    return strstr(data, text) != NULL;
}

struct in_file {
    const struct net *net;
    const struct tfm_safetensors *file;
    size_t seen;
};

static enum tfm_status compare(void *context, const struct tfm_tensor *tensor)
{
    struct in_file *in = context;
    const struct tfm_safetensor *stored = tfm_safetensors_find(in->file, tensor->name);
    struct tfm_weight weight;
    enum tfm_dtype dtype;

    ck_assert_msg(stored != NULL, "%s", tensor->name);
    ck_assert_int_eq(tfm_weights_get(in->net->weights, tensor->name, &dtype, &weight, NULL),
                     TFM_STATUS_OK);
    ck_assert_int_eq(stored->rank, tensor->rank);
    ck_assert_int_eq(memcmp(stored->shape, tensor->shape, (size_t)tensor->rank * 8), 0);
    ck_assert_uint_eq(stored->bytes, weight.bytes);
    ck_assert_msg(memcmp(stored->data, weight.data, weight.bytes) == 0, "%s", tensor->name);
    in->seen++;
    return TFM_STATUS_OK;
}

/* Catches: a setting that changes the logits and is passed over, one that the folder does not tell, a parameter that
 * is left out. */
START_TEST(other_decoders)
{
    struct tfm_nn_decoder config = small();
    double logits[TINY_VOCAB];
    struct tfm_safetensors *file = NULL;
    struct tfm_model *model = NULL;
    struct tfm_error err = {0};
    struct net net;

    others[_i].set(&config);
    make(&net, &config, logits);
    const struct tfm_export trained = of(&net, &config);
    ck_assert_int_eq(tfm_export_to_gguf(&trained, "m.gguf", TFM_DTYPE_F32, &err),
                     TFM_STATUS_UNSUPPORTED);
    ck_assert_msg(strstr(err.text, others[_i].says) && strstr(err.text, "m.gguf"), "%s", err.text);
    ck_assert_int_ne(access("m.gguf", F_OK), 0);

    to_folder(&trained, TFM_DTYPE_F32);
    ck_assert(file_has("f/config.json", "\"model_type\": \"tfm\""));
    ck_assert(file_has("f/config.json", others[_i].in_json));
    ck_assert_int_eq(tfm_safetensors_open("f/model.safetensors", &file, &err), TFM_STATUS_OK);
    struct in_file in = {&net, file, 0};
    tfm_graph_parameters(net.graph, compare, &in);
    ck_assert_uint_eq(in.seen, tfm_safetensors_count(file));
    tfm_safetensors_close(file);
    /* and whoever takes it for a Llama hears that it is none */
    ck_assert_int_eq(tfm_model_open("f", &model, &err), TFM_STATUS_UNSUPPORTED);
    ck_assert_msg(strstr(err.text, "model_type") != NULL, "%s", err.text);
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
    tcase_add_loop_test(tcase, other_decoders, 0, (int)(sizeof others / sizeof *others));
    tcase_add_test(tcase, layers_in_an_array);
    tcase_add_test(tcase, faults);
    return suite;
}

int main(void)
{
    return net_main("reference", make_suite);
}
