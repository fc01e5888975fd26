/* SPDX-License-Identifier: MIT
 * A model as a GGUF file and as a folder: the logits of both, there and back, a folder whose data begin at an odd byte,
 * and folders that must be refused. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tfm/llm.h>

#include "tests/folder.h"
#include "tests/llm/session_logits.h"

static const char *const leftovers[] = {
    "a.gguf", "b.gguf", "f/config.json", "f/tokenizer.json", "f/model.safetensors", "f"};

static void leave_folder(void)
{
    folder_leave(leftovers, sizeof leftovers / sizeof *leftovers);
}

/* The logits after a few tokens: free() them. */
static float *logits_of(const char *path)
{
    const int32_t ids[] = {256, 72, 101, 108, 108, 111, 32, 119};
    float *logits = malloc(TINY_VOCAB * sizeof *logits);

    ck_assert_ptr_nonnull(logits);
    session_logits(path, ids, 8, logits);
    return logits;
}

static void expect_near(const char *path, const char *other, double bound)
{
    float *a = logits_of(path), *b = logits_of(other);

    for (int i = 0; i < TINY_VOCAB; i++)
        ck_assert_msg(fabs((double)a[i] - (double)b[i]) <= bound, "%s, %s: logit %d: %g, %g", path,
                      other, i, (double)a[i], (double)b[i]);
    free(a);
    free(b);
}

static void to_folder(const char *from, enum tfm_dtype dtype)
{
    struct tfm_error err = {0};
    ck_assert_msg(tfm_convert_to_folder(from, "f", dtype, &err) == TFM_STATUS_OK, "%s", err.text);
}

static void to_gguf(const char *from, const char *to, enum tfm_dtype dtype)
{
    struct tfm_error err = {0};
    ck_assert_msg(tfm_convert_to_gguf(from, to, dtype, &err) == TFM_STATUS_OK, "%s", err.text);
}

static const struct {
    uint32_t heads, kv_heads, head_dim;
    enum tiny_head head;
    int biases;
    double freq_base;
} models[] = {
    {8, 2, 8, TINY_TIED, 0, 10000},
    {9, 3, 6, TINY_HEAD_OWN, 1, 500000},
    {4, 4, 16, TINY_HEAD_COPIED, 0, 0},
    {4, 1, 32, TINY_HEAD_OWN, 1, 10000},
};

/* Catches: halves taken for pairs, biases of q and k left in the old order, a head or a tie that is lost, eps or
 * base of the rotation rounded. */
START_TEST(there_and_back)
{
    struct tiny_llama tiny = tiny_llama_default();
    struct tfm_gguf *a = NULL, *b = NULL;

    tiny.heads = models[_i].heads;
    tiny.kv_heads = models[_i].kv_heads;
    tiny.head_dim = models[_i].head_dim;
    tiny.head = models[_i].head;
    tiny.biases = models[_i].biases;
    tiny.freq_base = models[_i].freq_base;
    tiny_llama_write(&tiny, "a.gguf");
    to_folder("a.gguf", TFM_DTYPE_F32);
    expect_near("a.gguf", "f", 1e-4);
    to_gguf("f", "b.gguf", TFM_DTYPE_F32);
    expect_near("a.gguf", "b.gguf", 0);
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
}
END_TEST

static const struct {
    enum tfm_dtype dtype;
    int folder;
    double bound;
} types[] = {
    {TFM_DTYPE_F16, 1, 0.05}, {TFM_DTYPE_BF16, 1, 0.4}, {TFM_DTYPE_F16, 0, 0.05},
    {TFM_DTYPE_BF16, 0, 0.4}, {TFM_DTYPE_Q8_0, 0, 0.5}, {TFM_DTYPE_Q4_1, 0, 8},
    {TFM_DTYPE_Q4_0, 0, 8},
};

/* Catches: a type that is written but not read, and one that is not rounded to (the logits would be equal). */
START_TEST(other_types)
{
    struct tiny_llama tiny = tiny_llama_default();
    struct tfm_error err = {0};

    tiny.head = TINY_HEAD_OWN;
    tiny_llama_write(&tiny, "a.gguf");
    if (types[_i].folder)
        to_folder("a.gguf", types[_i].dtype);
    else
        to_gguf("a.gguf", "b.gguf", types[_i].dtype);
    const char *made = types[_i].folder ? "f" : "b.gguf";
    expect_near("a.gguf", made, types[_i].bound);
    float *a = logits_of("a.gguf"), *b = logits_of(made);
    ck_assert_int_ne(memcmp(a, b, TINY_VOCAB * sizeof *a), 0);
    free(a);
    free(b);
    ck_assert_int_eq(tfm_convert_to_folder("a.gguf", "f", TFM_DTYPE_Q8_0, &err), TFM_STATUS_DTYPE);
    ck_assert_int_eq(tfm_convert_to_gguf("a.gguf", "b.gguf", TFM_DTYPE_I32, &err),
                     TFM_STATUS_DTYPE);
}
END_TEST

/* ---- folders that are edited ---- */

static char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *data = malloc(1 << 20);

    ck_assert(file && data);
    *size = fread(data, 1, 1 << 20, file);
    ck_assert_uint_lt(*size, 1 << 20);
    fclose(file);
    return data;
}

static void write_file(const char *path, const char *data, size_t size)
{
    FILE *file = fopen(path, "wb");

    ck_assert(file && fwrite(data, 1, size, file) == size);
    fclose(file);
}

/* A28: a blank more in the header, so that no tensor is aligned.
 * Catches: a device that reads floats in place from there (under the sanitizer). */
START_TEST(odd_data)
{
    struct tiny_llama tiny = tiny_llama_default();
    size_t size;

    tiny_llama_write(&tiny, "a.gguf");
    to_folder("a.gguf", TFM_DTYPE_F32);
    char *data = read_file("f/model.safetensors", &size);
    uint64_t length;
    memcpy(&length, data, 8);
    memmove(data + 8 + length + 1, data + 8 + length, size - 8 - length);
    data[8 + length] = ' ';
    length++;
    memcpy(data, &length, 8);
    write_file("f/model.safetensors", data, size + 1);
    free(data);
    expect_near("a.gguf", "f", 1e-4);
}
END_TEST

static const struct {
    const char *file, *old,
        *new; /* in this file, the first `old` becomes `new`; new NULL = no file */
    enum tfm_status status;
    const char *says;
} faults[] = {
    {"config.json", "", NULL, TFM_STATUS_IO, "f/config.json"},
    {"tokenizer.json", "", NULL, TFM_STATUS_IO, "f/tokenizer.json"},
    {"model.safetensors", "", NULL, TFM_STATUS_IO, "f/model.safetensors"},
    {"config.json", "{", "[", TFM_STATUS_FORMAT, "f/config.json:"},
    {"config.json", "\"llama\"", "\"gemma\"", TFM_STATUS_UNSUPPORTED, "model_type is 'gemma'"},
    {"config.json", "\"model_type\"", "\"model_tipe\"", TFM_STATUS_FORMAT, "model_type"},
    {"config.json", "\"silu\"", "\"gelu\"", TFM_STATUS_UNSUPPORTED, "hidden_act is 'gelu'"},
    {"config.json", "\"hidden_size\": 64", "\"hidden_size\": 6.4", TFM_STATUS_FORMAT,
     "hidden_size"},
    {"config.json", "\"hidden_size\": 64", "\"hidden_size\": -64", TFM_STATUS_FORMAT,
     "hidden_size"},
    {"config.json", "\"hidden_size\": 64", "\"hidden_size\": 72", TFM_STATUS_FORMAT,
     "model.embed_tokens.weight"},
    {"config.json", "\"num_attention_heads\": 8", "\"num_attention_heads\": 7", TFM_STATUS_FORMAT,
     "7 heads"},
    {"config.json", "\"vocab_size\": 259", "\"vocab_size\": 258", TFM_STATUS_FORMAT, "vocab_size"},
    {"config.json", "\"vocab_size\": 259", "\"vocab_size\": 260", TFM_STATUS_FORMAT, "260 tokens"},
    {"config.json", "\"vocab_size\": 259", "\"vocab_size\": 99999999999", TFM_STATUS_FORMAT,
     "vocab_size"},
    {"config.json", "\"mlp_bias\": false", "\"mlp_bias\": true", TFM_STATUS_UNSUPPORTED,
     "mlp_bias"},
    {"config.json", "\"mlp_bias\": false", "\"sliding_window\": 512", TFM_STATUS_UNSUPPORTED,
     "sliding_window"},
    {"config.json", "\"mlp_bias\": false", "\"rope_scaling\": {\"type\": \"linear\"}",
     TFM_STATUS_UNSUPPORTED, "rope_scaling"},
    {"config.json", "\"mlp_bias\": false", "\"rope_parameters\": {\"rope_type\": \"yarn\"}",
     TFM_STATUS_UNSUPPORTED, "rope_parameters"},
    {"config.json", "\"mlp_bias\": false", "\"partial_rotary_factor\": 0.5", TFM_STATUS_UNSUPPORTED,
     "partial_rotary_factor"},
    {"config.json", "\"mlp_bias\": false", "\"rope_interleaved\": true", TFM_STATUS_UNSUPPORTED,
     "rope_interleaved"},
    {"config.json", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false",
     TFM_STATUS_FORMAT, "lm_head.weight"},
    {"tokenizer.json", "\"BPE\"", "\"WordPiece\"", TFM_STATUS_UNSUPPORTED, "byte-level BPE"},
    {"tokenizer.json", "\"normalizer\": null", "\"normalizer\": {\"type\": \"NFC\"}",
     TFM_STATUS_UNSUPPORTED, "normalizer"},
    {"tokenizer.json", "\"Digits\"", "\"Metaspace\"", TFM_STATUS_UNSUPPORTED, "pre_tokenizer"},
    {"tokenizer.json", "\"individual_digits\": true", "\"individual_digits\": false",
     TFM_STATUS_UNSUPPORTED, "pre_tokenizer"},
    {"tokenizer.json", "\"ignore_merges\": false", "\"ignore_merges\": true",
     TFM_STATUS_UNSUPPORTED, "ignore_merges"},
    {"tokenizer.json", "\"post_processor\": null",
     "\"post_processor\": {\"type\": \"BertProcessing\"}", TFM_STATUS_UNSUPPORTED,
     "post_processor"},
    {"tokenizer.json", "\"id\": 256", "\"id\": 255", TFM_STATUS_FORMAT, "same id"},
    {"tokenizer.json", "\"merges\": []", "\"merges\": [3]", TFM_STATUS_FORMAT, "merge"},
    {"model.safetensors", "q_proj", "q_projx", TFM_STATUS_FORMAT, "model.safetensors"},
    {"model.safetensors", "0.self_attn.q_proj", "0.self_attn.q_prox", TFM_STATUS_FORMAT,
     "\"model.layers.0.self_attn.q_proj.weight\""},
    {"model.safetensors", "model.norm.weight", "model.morn.weight", TFM_STATUS_FORMAT,
     "\"model.norm.weight\""},
};

/* Catches: a setting that changes the result and is passed over, an error that does not say where. */
START_TEST(folders_that_are_refused)
{
    struct tiny_llama tiny = tiny_llama_default();
    struct tfm_model *model = NULL;
    struct tfm_error err = {0};
    char path[64];
    size_t size, at = 0;

    tiny_llama_write(&tiny, "a.gguf");
    to_folder("a.gguf", TFM_DTYPE_F32);
    snprintf(path, sizeof path, "f/%s", faults[_i].file);
    if (faults[_i].new) {
        const size_t n_old = strlen(faults[_i].old), n_new = strlen(faults[_i].new);
        char *data = read_file(path, &size), *edited = malloc(size + n_new);
        ck_assert_ptr_nonnull(edited);
        while (at + n_old <= size && memcmp(data + at, faults[_i].old, n_old) != 0)
            at++;
        ck_assert_msg(at + n_old <= size, "no %s in %s", faults[_i].old, path);
        memcpy(edited, data, at);
        memcpy(edited + at, faults[_i].new, n_new);
        memcpy(edited + at + n_new, data + at + n_old, size - at - n_old);
        write_file(path, edited, size + n_new - n_old);
        free(edited);
        free(data);
    } else {
        ck_assert_int_eq(unlink(path), 0);
    }
    ck_assert_msg(tfm_model_open("f", &model, &err) == faults[_i].status, "%s: %s",
                  tfm_status_name(err.status), err.text);
    ck_assert_ptr_null(model);
    ck_assert_msg(strstr(err.text, faults[_i].says) != NULL, "%s", err.text);
    ck_assert_msg(strstr(err.text, "f") != NULL && !strchr(err.text, '\n'), "%s", err.text);
}
END_TEST

/* A tensor that has no place in a Llama, under a name that only a GGUF file uses.
 * Catches: GGUF's names found in a folder. */
START_TEST(a_foreign_name)
{
    struct tiny_llama tiny = tiny_llama_default();
    struct tfm_safetensors *file = NULL;
    struct tfm_safetensors_source sources[64];
    struct tfm_model *model = NULL;
    struct tfm_error err = {0};
    const float extra[2] = {1, 2};
    size_t n = 0;

    tiny_llama_write(&tiny, "a.gguf");
    to_folder("a.gguf", TFM_DTYPE_F32);
    ck_assert_int_eq(tfm_safetensors_open("f/model.safetensors", &file, &err), TFM_STATUS_OK);
    for (; n < tfm_safetensors_count(file); n++) {
        const struct tfm_safetensor *t = tfm_safetensors_at(file, n);
        sources[n] = (struct tfm_safetensors_source){t->name,  t->dtype, t->rank, t->shape,
                                                     t->dtype, t->data,  0};
    }
    sources[n++] = (struct tfm_safetensors_source){
        "rope_freqs.weight", TFM_DTYPE_F32, 1, &(int64_t){2}, TFM_DTYPE_F32, extra, 0};
    ck_assert_int_eq(tfm_safetensors_save("f/model.safetensors", sources, n, &err), TFM_STATUS_OK);
    tfm_safetensors_close(file);
    ck_assert_int_eq(tfm_model_open("f", &model, &err), TFM_STATUS_UNSUPPORTED);
    ck_assert_msg(strstr(err.text, "rope_freqs.weight") != NULL, "%s", err.text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("convert");
    TCase *tcase = tcase_create("convert");
    SRunner *runner = srunner_create(suite);
    int failed;

    test_backend = "reference";
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, folder_enter, leave_folder);
    tcase_add_loop_test(tcase, there_and_back, 0, (int)(sizeof models / sizeof *models));
    tcase_add_loop_test(tcase, other_types, 0, (int)(sizeof types / sizeof *types));
    tcase_add_test(tcase, odd_data);
    tcase_add_loop_test(tcase, folders_that_are_refused, 0, (int)(sizeof faults / sizeof *faults));
    tcase_add_test(tcase, a_foreign_name);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
