/* SPDX-License-Identifier: MIT
 * Decoders that no Llama is go into no GGUF file, but into folders as they are, and are read back from them; and what is
 * said of a folder that was changed. */
#include "tests/llm/export_scene.h"

#include <jansson.h>

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

/* Catches: a setting that changes the logits and is passed over, one that the folder does not tell or that is not read
 * back, a parameter that is left out or gets another one's values. */
START_TEST(other_decoders)
{
    struct tfm_nn_decoder config = small();
    double logits[TINY_VOCAB];
    struct tfm_safetensors *file = NULL;
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
    if (!config.bidirectional)
        ck_assert_double_le(distance("f", logits), 1e-4);
    net_end(&net);
}
END_TEST

/* ---- read back ---- */

/* A decoder with much that a Llama has not. */
static struct tfm_nn_decoder strange(void)
{
    struct tfm_nn_decoder c = small();

    set_norm(&c);
    set_block(&c);
    set_ffn(&c);
    set_learned(&c);
    set_softcap(&c);
    c.tied = 0;
    c.each.q_bias = c.each.up_bias = c.each.down_bias = 1;
    return c;
}

static const struct {
    enum tfm_dtype dtype;
    double bound;
} narrow[] = {{TFM_DTYPE_F16, .05}, {TFM_DTYPE_BF16, .3}};

/* Catches: norms and biases of a narrow folder that are taken as F32, a type that config.json does not tell. */
START_TEST(narrow_types)
{
    struct tfm_nn_decoder config = strange(), read;
    double logits[TINY_VOCAB];
    struct tfm_model *model = NULL;
    struct tfm_error err = {0};
    struct net net;

    make(&net, &config, logits);
    const struct tfm_export trained = of(&net, &config);
    to_folder(&trained, narrow[_i].dtype);
    const double far = distance("f", logits);
    ck_assert_double_le(far, narrow[_i].bound);
    ck_assert_double_gt(far, 1e-6);
    ck_assert_msg(tfm_model_open("f", &model, &err) == TFM_STATUS_OK, "%s", err.text);
    tfm_model_decoder(model, &read);
    ck_assert_int_eq(read.each.down, narrow[_i].dtype);
    ck_assert_int_eq(read.position_weight, narrow[_i].dtype);
    tfm_model_close(model);
    net_end(&net);
}
END_TEST

static int same_file(const char *a, const char *b)
{
    struct tfm_safetensors *left = NULL, *right = NULL;
    int same;

    ck_assert_int_eq(tfm_safetensors_open(a, &left, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_safetensors_open(b, &right, NULL), TFM_STATUS_OK);
    same = tfm_safetensors_count(left) == tfm_safetensors_count(right);
    for (size_t i = 0; same && i < tfm_safetensors_count(left); i++) {
        const struct tfm_safetensor *x = tfm_safetensors_at(left, i);
        const struct tfm_safetensor *y = tfm_safetensors_find(right, x->name);
        same = y && x->bytes == y->bytes && memcmp(x->data, y->data, x->bytes) == 0;
    }
    tfm_safetensors_close(left);
    tfm_safetensors_close(right);
    return same;
}

/* Catches: a conversion that takes the folder for a Llama's, or loses a setting. */
START_TEST(converted)
{
    struct tfm_nn_decoder config = strange();
    double logits[TINY_VOCAB];
    struct tfm_error err = {0};
    struct net net;

    make_folder(&net, &config, logits);
    ck_assert_msg(tfm_convert_to_folder("f", "g", TFM_DTYPE_F32, &err) == TFM_STATUS_OK, "%s",
                  err.text);
    ck_assert(same_file("f/model.safetensors", "g/model.safetensors"));
    ck_assert_double_le(distance("g", logits), 1e-4);
    ck_assert_int_eq(tfm_convert_to_gguf("f", "m.gguf", TFM_DTYPE_F32, &err),
                     TFM_STATUS_UNSUPPORTED);
    ck_assert_msg(strstr(err.text, "\"norm\" is \"layer\"") != NULL, "%s", err.text);
    ck_assert_int_ne(access("m.gguf", F_OK), 0);
    net_end(&net);
}
END_TEST

/* Catches: a place to train on from that is not what was trained. */
START_TEST(weights_f32)
{
    struct tfm_nn_decoder config = strange(), read;
    double logits[TINY_VOCAB];
    struct tfm_weights *weights = NULL;
    struct tfm_model *model = NULL;
    struct tfm_error err = {0};
    struct net net;

    make(&net, &config, logits);
    struct tfm_export trained = of(&net, &config);
    to_folder(&trained, TFM_DTYPE_F32);
    ck_assert_int_eq(tfm_model_open("f", &model, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_weights_create(&weights, &err), TFM_STATUS_OK);
    ck_assert_msg(tfm_model_weights_f32(model, &read, weights, &err) == TFM_STATUS_OK, "%s",
                  err.text);
    trained = (struct tfm_export){&read, weights, "f", NULL};
    ck_assert_msg(tfm_export_to_folder(&trained, "g", TFM_DTYPE_F32, &err) == TFM_STATUS_OK, "%s",
                  err.text);
    ck_assert(same_file("f/model.safetensors", "g/model.safetensors"));
    ck_assert_double_le(distance("g", logits), 1e-4);
    tfm_weights_release(weights);
    tfm_model_close(model);
    net_end(&net);
}
END_TEST

/* ---- folders that were changed ---- */

/* "key" = value in the object "decoder" of f/config.json; NULL takes it out. */
static void change_config(const char *key, const char *value)
{
    json_t *config = json_load_file("f/config.json", 0, NULL);
    json_t *decoder = json_object_get(config, "decoder");

    ck_assert_ptr_nonnull(decoder);
    if (value)
        json_object_set_new(decoder, key, json_loads(value, JSON_DECODE_ANY, NULL));
    else
        json_object_del(decoder, key);
    ck_assert_int_eq(json_dump_file(config, "f/config.json", 0), 0);
    json_decref(config);
}

static const struct {
    const char *key, *value;
    enum tfm_status status;
    const char *says, *too;
} changes[] = {
    {"colour", "1", TFM_STATUS_FORMAT, "f/config.json: there is no key \"colour\"", ""},
    {"width", NULL, TFM_STATUS_FORMAT, "f/config.json: \"width\" is missing", ""},
    {"width", "\"64\"", TFM_STATUS_FORMAT, "\"width\" is \"64\"", "whole number from 1"},
    {"width", "-64", TFM_STATUS_FORMAT, "\"width\" is -64", "whole number from 1"},
    {"layers", "3", TFM_STATUS_FORMAT, "\"blk.2.", "is missing"},
    {"layers", "1", TFM_STATUS_UNSUPPORTED, "\"blk.1.", "no place in the decoder"},
    {"ffn_width", "90", TFM_STATUS_FORMAT, "\"blk.0.ffn.up.weight\" is [96, 64]", "[90, 64]"},
    {"vocab", "258", TFM_STATUS_FORMAT, "f/tokenizer.json", "not below the vocab_size or vocab"},
    {"tied", "true", TFM_STATUS_UNSUPPORTED, "\"output.weight\" has no place", ""},
    {"position", "\"none\"", TFM_STATUS_UNSUPPORTED, "\"pos_embd.weight\" has no place", ""},
    {"position", "\"spiral\"", TFM_STATUS_FORMAT, "\"position\" is \"spiral\"", "one of"},
    {"heads", "3", TFM_STATUS_SHAPE, "f/config.json", "H of q"},
    {"dtype", "\"q8_0\"", TFM_STATUS_UNSUPPORTED, "is f32 and config.json wants q8_0", ""},
    {"rope_scaling", "\"factors\"", TFM_STATUS_OK, "", ""}, /* nothing is rotated */
};

/* Catches: a key that is passed over, a shape that is believed, a tensor that nobody reads. */
START_TEST(changed_configs)
{
    struct tfm_nn_decoder config = strange();
    double logits[TINY_VOCAB];
    struct tfm_model *model = NULL;
    struct tfm_error err = {0};
    struct net net;

    make_folder(&net, &config, logits);
    change_config(changes[_i].key, changes[_i].value);
    const enum tfm_status status = tfm_model_open("f", &model, &err);
    ck_assert_msg(status == changes[_i].status, "%d %s", (int)status, err.text);
    ck_assert_msg(strstr(err.text, changes[_i].says) && strstr(err.text, changes[_i].too), "%s",
                  err.text);
    ck_assert(status == TFM_STATUS_OK ? model != NULL : model == NULL);
    tfm_model_close(model);
    net_end(&net);
}
END_TEST

/* Catches: a decoder that is missing and read as one of zeroes. */
START_TEST(no_decoder)
{
    struct tfm_nn_decoder config = strange();
    double logits[TINY_VOCAB];
    struct tfm_model *model = NULL;
    struct tfm_error err = {0};
    struct net net;

    make_folder(&net, &config, logits);
    json_t *json = json_load_file("f/config.json", 0, NULL);
    json_object_set_new(json, "decoder", json_array());
    ck_assert_int_eq(json_dump_file(json, "f/config.json", 0), 0);
    json_decref(json);
    ck_assert_int_eq(tfm_model_open("f", &model, &err), TFM_STATUS_FORMAT);
    ck_assert_msg(strstr(err.text, "\"decoder\" is missing") != NULL, "%s", err.text);
    net_end(&net);
}
END_TEST

/* Catches: tokens one after the other through a decoder whose tokens see those behind them. */
START_TEST(bidirectional)
{
    struct tfm_nn_decoder config = small();
    double logits[TINY_VOCAB];
    struct test_devices devices;
    struct tfm_session *session = NULL;
    struct tfm_model *model = NULL;
    struct tfm_error err = {0};
    struct net net;

    config.bidirectional = 1;
    make_folder(&net, &config, logits);
    test_devices_open(&devices);
    ck_assert_msg(tfm_model_open("f", &model, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_int_eq(tfm_session_create(model, devices.device, devices.n, NULL, &session, &err),
                     TFM_STATUS_UNSUPPORTED);
    ck_assert_msg(strstr(err.text, "bidirectional") != NULL, "%s", err.text);
    tfm_model_close(model);
    test_devices_close(&devices);
    net_end(&net);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("export_own");
    TCase *tcase = net_case(suite, "export_own");

    test_backend = "reference";
    tcase_add_checked_fixture(tcase, enter_folder, leave_folder);
    tcase_add_loop_test(tcase, other_decoders, 0, (int)(sizeof others / sizeof *others));
    tcase_add_loop_test(tcase, narrow_types, 0, (int)(sizeof narrow / sizeof *narrow));
    tcase_add_test(tcase, converted);
    tcase_add_test(tcase, weights_f32);
    tcase_add_loop_test(tcase, changed_configs, 0, (int)(sizeof changes / sizeof *changes));
    tcase_add_test(tcase, no_decoder);
    tcase_add_test(tcase, bidirectional);
    return suite;
}

int main(void)
{
    return net_main("reference", make_suite);
}
