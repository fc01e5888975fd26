/* SPDX-License-Identifier: MIT
 * The weights of a model file as the beginning of a training: a decoder over them computes what the file's model does,
 * and written again they are what they were. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tfm/llm.h>

#include "tests/folder.h"
#include "tests/llm/naive_llama.h"
#include "tests/llm/tiny_llama.h"
#include "tests/nn/net.h"

enum { N = 8 };

static const int32_t ids[N] = {256, 72, 101, 108, 108, 111, 32, 119};

static const char *const leftovers[] = {
    "a.gguf", "b.gguf", "f/config.json", "f/tokenizer.json", "f/model.safetensors", "f"};

static void leave_folder(void)
{
    folder_leave(leftovers, sizeof leftovers / sizeof *leftovers);
}

/* Begins a net with the file's weights. The model stays open for its factors. */
static struct tfm_model *begin(struct net *net, const char *path, struct tfm_nn_decoder *decoder)
{
    struct tfm_model *model = NULL;
    struct tfm_error err = {0};

    ck_assert_msg(tfm_model_open(path, &model, &err) == TFM_STATUS_OK, "%s", err.text);
    net_begin(net, N, 1);
    ck_assert_msg(tfm_model_weights_f32(model, decoder, net->weights, &err) == TFM_STATUS_OK, "%s",
                  err.text);
    return model;
}

/* The decoder's last logits beside those of plain loops over the GGUF file a.gguf. */
static void expect_logits(const char *path, double bound)
{
    static const int32_t pos[N] = {0, 1, 2, 3, 4, 5, 6, 7};
    double got[TINY_VOCAB], want[TINY_VOCAB];
    struct tfm_nn_decoder decoder;
    struct net net;
    struct tfm_model *model = begin(&net, path, &decoder);
    struct naive_llama *naive = naive_llama_open("a.gguf");

    ck_assert_ptr_null(decoder.layer);
    ck_assert_int_eq(decoder.embedding, TFM_DTYPE_F32);
    ck_assert_int_eq(decoder.each.gate, TFM_DTYPE_F32);
    tfm_nn_decoder(net.graph, &decoder);
    net_compile(&net, 1);
    net_put_i32(&net, "ids", 0, N, ids);
    net_put_i32(&net, "pos", 0, N, pos);
    net_run_n(&net, N, 0);
    net_get(&net, "logits", (size_t)(N - 1) * TINY_VOCAB, TINY_VOCAB, got);
    naive_llama_logits(naive, ids, N, 0, want);
    net_compare(got, want, TINY_VOCAB, bound, path);
    naive_llama_close(naive);
    net_end(&net);
    tfm_model_close(model);
}

static const struct {
    uint32_t type, embedding_type;
    enum tiny_head head;
    int biases;
} files[] = {
    {TINY_F32, TINY_F32, TINY_TIED, 0},      {TINY_F16, TINY_F16, TINY_HEAD_OWN, 1},
    {TINY_Q8_0, TINY_Q8_0, TINY_TIED, 0},    {TINY_Q4_1, TINY_Q8_0, TINY_HEAD_OWN, 0},
    {TINY_Q4_0, TINY_F16, TINY_HEAD_OWN, 1},
};

/* Catches: blocks that are not dequantized, weights under each other's names, a style of rotation, base or eps of which
 * training would know nothing, biases that are lost. */
START_TEST(logits)
{
    struct tiny_llama tiny = tiny_llama_default();

    tiny.type = files[_i].type;
    tiny.embedding_type = files[_i].embedding_type;
    tiny.head = files[_i].head;
    tiny.biases = files[_i].biases;
    tiny.freq_base = 5000;
    tiny_llama_write(&tiny, "a.gguf");
    expect_logits("a.gguf", 2e-5);
}
END_TEST

static const struct {
    enum tfm_dtype dtype;
    double bound;
} folders[] = {{TFM_DTYPE_F32, 2e-5}, {TFM_DTYPE_F16, 5e-3}, {TFM_DTYPE_BF16, 4e-2}};

/* A28 too: with a blank more in the header no tensor is aligned.
 * Catches: halves taken for pairs, halves or bfloats read from an odd place (under the sanitizer). */
START_TEST(folders_of_any_type)
{
    struct tiny_llama tiny = tiny_llama_default();
    struct tfm_error err = {0};
    static char data[1 << 20];

    tiny.head = TINY_HEAD_OWN;
    tiny.biases = 1;
    tiny_llama_write(&tiny, "a.gguf");
    ck_assert_msg(tfm_convert_to_folder("a.gguf", "f", folders[_i].dtype, &err) == TFM_STATUS_OK,
                  "%s", err.text);
    expect_logits("f", folders[_i].bound);

    FILE *file = fopen("f/model.safetensors", "rb");
    ck_assert_ptr_nonnull(file);
    const size_t size = fread(data, 1, sizeof data - 1, file);
    fclose(file);
    uint64_t length;
    memcpy(&length, data, 8);
    memmove(data + 8 + length + 1, data + 8 + length, size - 8 - length);
    data[8 + length++] = ' ';
    memcpy(data, &length, 8);
    file = fopen("f/model.safetensors", "wb");
    ck_assert(file && fwrite(data, 1, size + 1, file) == size + 1);
    fclose(file);
    expect_logits("f", folders[_i].bound);
}
END_TEST

/* Catches: an F32 file that comes back with other bits after a training of no steps. */
START_TEST(there_and_back)
{
    struct tiny_llama tiny = tiny_llama_default();
    struct tfm_gguf *a = NULL, *b = NULL;
    struct tfm_nn_decoder decoder;
    struct tfm_error err = {0};
    struct net net;

    tiny.head = TINY_HEAD_OWN;
    tiny.biases = 1;
    tiny_llama_write(&tiny, "a.gguf");
    if (_i)
        ck_assert_int_eq(tfm_convert_to_folder("a.gguf", "f", TFM_DTYPE_F32, &err), TFM_STATUS_OK);
    struct tfm_model *model = begin(&net, _i ? "f" : "a.gguf", &decoder);
    const struct tfm_export trained = {&decoder, net.weights, _i ? "f" : "a.gguf", NULL};
    ck_assert_msg(tfm_export_to_gguf(&trained, "b.gguf", TFM_DTYPE_F32, &err) == TFM_STATUS_OK,
                  "%s", err.text);
    ck_assert_int_eq(tfm_gguf_open("a.gguf", &a, NULL), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_gguf_open("b.gguf", &b, NULL), TFM_STATUS_OK);
    ck_assert_uint_eq(tfm_gguf_tensor_count(a), tfm_gguf_tensor_count(b));
    for (size_t i = 0; i < tfm_gguf_tensor_count(a); i++) {
        const struct tfm_gguf_tensor *x = tfm_gguf_tensor(a, i);
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)x->name.size, x->name.data);
        const struct tfm_gguf_tensor *y = tfm_gguf_find(b, name);
        ck_assert_msg(y && x->bytes == y->bytes && memcmp(x->data, y->data, x->bytes) == 0,
                      "tensor %s", name);
    }
    tfm_gguf_close(a);
    tfm_gguf_close(b);
    net_end(&net);
    tfm_model_close(model);
}
END_TEST

/* Catches: factors of rotation that a training would lose. */
START_TEST(factors_stay)
{
    static const float factors[4] = {1, 2, 4, 8};
    struct tiny_llama tiny = tiny_llama_default();
    struct tfm_nn_decoder decoder, again;
    struct tfm_error err = {0};
    struct net net, second;

    tiny_llama_write(&tiny, "a.gguf");
    struct tfm_model *model = begin(&net, "a.gguf", &decoder);
    ck_assert_int_eq(decoder.rope.scaling, TFM_NN_ROPE_SCALING_NONE);
    decoder.rope.scaling = TFM_NN_ROPE_SCALING_FACTORS;
    decoder.rope.factors = factors;
    const struct tfm_export trained = {&decoder, net.weights, "a.gguf", NULL};
    ck_assert_msg(tfm_export_to_gguf(&trained, "b.gguf", TFM_DTYPE_F32, &err) == TFM_STATUS_OK,
                  "%s", err.text);
    struct tfm_model *other = begin(&second, "b.gguf", &again);
    ck_assert_int_eq(again.rope.scaling, TFM_NN_ROPE_SCALING_FACTORS);
    ck_assert_mem_eq(again.rope.factors, factors, sizeof factors);
    net_end(&second);
    net_end(&net);
    tfm_model_close(other);
    tfm_model_close(model);
}
END_TEST

/* Catches: a decoder that is half filled when it cannot be had, weights over others. */
START_TEST(refusals)
{
    struct tiny_llama tiny = tiny_llama_default();
    struct tfm_nn_decoder decoder = {.vocab = -7};
    struct tfm_weights *weights = NULL;
    struct tfm_model *model = NULL;
    struct tfm_error err = {0};

    tiny.biases = 1;
    tiny.missing = "blk.1.attn_q.bias";
    tiny_llama_write(&tiny, "a.gguf");
    ck_assert_int_eq(tfm_weights_create(&weights, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_model_open("a.gguf", &model, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_model_weights_f32(model, &decoder, weights, &err), TFM_STATUS_UNSUPPORTED);
    ck_assert_msg(strstr(err.text, "a.gguf: layer 1") != NULL, "%s", err.text);
    ck_assert_int_eq(decoder.vocab, -7);
    tfm_model_close(model);

    tiny = tiny_llama_default();
    tiny_llama_write(&tiny, "a.gguf");
    ck_assert_int_eq(tfm_model_open("a.gguf", &model, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_model_weights_f32(model, &decoder, weights, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_model_weights_f32(model, &decoder, weights, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    tfm_model_close(model);
    tfm_weights_release(weights);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("model_weights");
    TCase *tcase = net_case(suite, "model_weights");

    tcase_add_checked_fixture(tcase, folder_enter, leave_folder);
    tcase_add_loop_test(tcase, logits, 0, (int)(sizeof files / sizeof *files));
    tcase_add_loop_test(tcase, folders_of_any_type, 0, (int)(sizeof folders / sizeof *folders));
    tcase_add_loop_test(tcase, there_and_back, 0, 2);
    tcase_add_test(tcase, factors_stay);
    tcase_add_test(tcase, refusals);
    return suite;
}

int main(void)
{
    return net_main("reference", make_suite);
}
