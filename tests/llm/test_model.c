/* SPDX-License-Identifier: MIT
 * Model files that must be refused, each with a text that names what is wrong: another architecture or
 * RoPE scaling, tensors missing, misshapen, truncated, of a foreign type, or without a place. */
#include <check.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tfm/model.h>

#include "tests/llm/tiny_llama.h"

static char path[128];

static void check_refused(enum tfm_status status, const char *const words[3])
{
    struct tfm_model *model = NULL;
    struct tfm_error err = {0};
    ck_assert_msg(tfm_model_open(path, &model, &err) == status, "%s (%s): \"%s\"",
                  tfm_status_name(err.status), tfm_status_name(status), err.text);
    ck_assert_ptr_null(model);
    ck_assert_msg(strstr(err.text, path) != NULL, "no path in \"%s\"", err.text);
    ck_assert_ptr_null(strchr(err.text, '\n'));
    for (int i = 0; i < 3 && words[i]; i++)
        ck_assert_msg(strstr(err.text, words[i]) != NULL, "no \"%s\" in \"%s\"", words[i],
                      err.text);
}

static const struct {
    enum tfm_status status;
    const char *words[3];
    struct tiny_llama fault;
} faults[] = {
    {TFM_STATUS_UNSUPPORTED, {"mamba"}, {.architecture = "mamba"}},
    /* A11 */
    {TFM_STATUS_UNSUPPORTED, {"yarn"}, {.scaling = "yarn"}},
    {TFM_STATUS_UNSUPPORTED, {"linear"}, {.scaling = "linear"}},
    {TFM_STATUS_UNSUPPORTED, {"bogus"}, {.scaling = "bogus"}},
    /* A05: neither embedding nor head; and the other parts */
    {TFM_STATUS_FORMAT, {"token_embd.weight"}, {.missing = "token_embd.weight"}},
    {TFM_STATUS_FORMAT,
     {"token_embd.weight"},
     {.missing = "token_embd.weight", .head = TINY_HEAD_OWN}},
    {TFM_STATUS_FORMAT, {"blk.1.ffn_up.weight"}, {.missing = "blk.1.ffn_up.weight"}},
    {TFM_STATUS_FORMAT, {"blk.0.attn_norm.weight"}, {.missing = "blk.0.attn_norm.weight"}},
    {TFM_STATUS_FORMAT, {"output_norm.weight"}, {.missing = "output_norm.weight"}},
    {TFM_STATUS_FORMAT,
     {"blk.0.attn_k.weight", "[15, 64]", "[16, 64]"},
     {.short_tensor = "blk.0.attn_k.weight"}},
    {TFM_STATUS_FORMAT,
     {"blk.1.ffn_norm.weight", "[63]", "[64]"},
     {.short_tensor = "blk.1.ffn_norm.weight"}},
    {TFM_STATUS_FORMAT, {"258", "259"}, {.short_tensor = "token_embd.weight"}},
    /* A26 */
    {TFM_STATUS_UNSUPPORTED,
     {"blk.1.attn_q.weight", "Q4_K"},
     {.foreign_tensor = "blk.1.attn_q.weight",
      .foreign_type = TINY_Q4_K,
      .width = 256,
      .foreign_bytes = 64 * 144}},
    {TFM_STATUS_UNSUPPORTED,
     {"blk.0.attn_norm.weight"},
     {.foreign_tensor = "blk.0.attn_norm.weight", .foreign_type = TINY_Q8_0, .foreign_bytes = 68}},
    {TFM_STATUS_UNSUPPORTED, {"blk.0.attn_sinks.weight"}, {.extra = "blk.0.attn_sinks.weight"}},
    {TFM_STATUS_FORMAT, {"8", "3"}, {.kv_heads = 3}},
    {TFM_STATUS_FORMAT, {"8", "9"}, {.kv_heads = 9}},
};
enum { N_FAULTS = sizeof faults / sizeof *faults };

/* The default with the fields of a fault that are set. */
static struct tiny_llama with(const struct tiny_llama *fault)
{
    struct tiny_llama tiny = tiny_llama_default();
    tiny.architecture = fault->architecture;
    tiny.scaling = fault->scaling;
    tiny.missing = fault->missing;
    tiny.short_tensor = fault->short_tensor;
    tiny.foreign_tensor = fault->foreign_tensor;
    tiny.foreign_type = fault->foreign_type;
    tiny.foreign_bytes = fault->foreign_bytes;
    tiny.extra = fault->extra;
    tiny.head = fault->head;
    tiny.width = fault->width ? fault->width : tiny.width;
    tiny.kv_heads = fault->kv_heads ? fault->kv_heads : tiny.kv_heads;
    return tiny;
}

START_TEST(faulty_file)
{
    struct tiny_llama tiny = with(&faults[_i].fault);
    tiny_llama_write(&tiny, path);
    check_refused(faults[_i].status, faults[_i].words);
}
END_TEST

/* Without a fault the same file opens: the faults are what is refused. */
START_TEST(faultless_file)
{
    struct tiny_llama tiny = tiny_llama_default();
    struct tfm_model *model = NULL;
    struct tfm_error err = {0};
    tiny.scaling = "none";
    tiny_llama_write(&tiny, path);
    ck_assert_msg(tfm_model_open(path, &model, &err) == TFM_STATUS_OK, "%s", err.text);
    const struct tfm_model_config *c = tfm_model_config(model);
    ck_assert_str_eq(c->architecture, "llama");
    ck_assert_int_eq(c->vocab, TINY_VOCAB);
    ck_assert_int_eq(c->context, 64);
    ck_assert_int_eq(c->width, 64);
    ck_assert_int_eq(c->layers, 2);
    ck_assert_int_eq(c->heads, 8);
    ck_assert_int_eq(c->kv_heads, 2);
    ck_assert_int_eq(c->head_dim, 8);
    ck_assert_int_eq(c->ffn_width, 96);
    ck_assert_int_eq(c->rope_dims, 8);
    ck_assert_int_eq(c->rope_style, TFM_ROPE_ADJACENT);
    ck_assert_double_eq_tol(c->eps, 1e-5, 1e-9);
    ck_assert_int_eq(c->tied, 1);
    ck_assert_str_eq(tfm_model_path(model), path);
    tfm_model_close(model);
}
END_TEST

static long file_size(void)
{
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    fclose(file);
    return size;
}

/* A25: a download that stopped; a byte less at the end, and every 1/20 of the file. */
START_TEST(truncated_file)
{
    struct tiny_llama tiny = tiny_llama_default();
    tiny_llama_write(&tiny, path);
    const long size = file_size();
    const char *const none[3] = {NULL}, *const tensor[3] = {"output_norm.weight"};
    ck_assert_int_eq(truncate(path, size - 1), 0);
    check_refused(TFM_STATUS_FORMAT, tensor);
    for (int part = 19; part >= 0; part--) {
        ck_assert_int_eq(truncate(path, size * part / 20), 0);
        check_refused(TFM_STATUS_FORMAT, none);
    }
}
END_TEST

START_TEST(no_file)
{
    const char *const none[3] = {NULL};
    unlink(path);
    check_refused(TFM_STATUS_IO, none);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    fputs("This is a text and no model at all, however long it is.\n", file);
    fclose(file);
    check_refused(TFM_STATUS_FORMAT, none);
}
END_TEST

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof path, "%.80s/tfm-model-XXXXXX", tmp ? tmp : "/tmp");
    int file = mkstemp(path);
    if (file < 0)
        return 99;
    close(file);
    Suite *suite = suite_create("model");
    TCase *tcase = tcase_create("model");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, faulty_file, 0, N_FAULTS);
    tcase_add_test(tcase, faultless_file);
    tcase_add_test(tcase, truncated_file);
    tcase_add_test(tcase, no_file);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    unlink(path);
    return failed != 0;
}
