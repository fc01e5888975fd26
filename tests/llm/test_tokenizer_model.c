/* SPDX-License-Identifier: MIT
 * The tokenizer of a real model: token lists that the model's own tokenizer gives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <check.h>
#include <jansson.h>

#include <tfm/tokenizer.h>

#include "tests/skip.h"

static struct tfm_tokenizer *tokenizer;
static json_t *golden;

static json_t *read_json(const char *name)
{
    const char *folder = getenv("TFM_TEST_GOLDEN");
    char path[1024];
    json_error_t why;
    json_t *json;

    snprintf(path, sizeof path, "%s/%s", folder ? folder : "tests/golden", name);
    json = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    ck_assert_msg(json != NULL, "%s:%d: %s", path, why.line, why.text);
    return json;
}

static void setup(void)
{
    struct tfm_gguf *gguf = NULL;
    struct tfm_error err;

    ck_assert_msg(tfm_gguf_open(getenv("TFM_TEST_MODEL"), &gguf, &err) == TFM_STATUS_OK, "%s",
                  err.text);
    ck_assert_msg(tfm_tokenizer_create(gguf, &tokenizer, &err) == TFM_STATUS_OK, "%s", err.text);
    tfm_gguf_close(gguf);
    golden = read_json("smollm2-q4_1.json");
}

static void teardown(void)
{
    json_decref(golden);
    tfm_tokenizer_destroy(tokenizer);
}

static int32_t *encode(const char *text, size_t size, unsigned flags, size_t *n)
{
    int32_t *ids = NULL;
    struct tfm_error err;

    ck_assert_msg(tfm_tokenizer_encode(tokenizer, text, size, flags, &ids, n, &err) ==
                      TFM_STATUS_OK,
                  "%s", err.text);
    return ids;
}

static void append(void *context, const char *data, size_t size)
{
    FILE *file = context;
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
}

/* Catches: pieces that are not the bytes of the text, and a stream that changes them (A30). */
static void expect_bytes(const int32_t *ids, size_t n, const char *text, size_t size)
{
    struct tfm_stream stream = {{0}, 0};
    char *streamed = NULL;
    size_t n_streamed = 0;
    FILE *file = open_memstream(&streamed, &n_streamed);

    ck_assert_ptr_nonnull(file);
    for (size_t i = 0; i < n; i++) {
        struct tfm_text piece;
        ck_assert_int_eq(tfm_tokenizer_piece(tokenizer, ids[i], &piece, NULL), TFM_STATUS_OK);
        tfm_stream_put(&stream, piece.data, piece.size, append, file);
        ck_assert_uint_lt(stream.n_held, 4);
    }
    tfm_stream_flush(&stream, append, file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert(n_streamed == size && memcmp(streamed, text, size) == 0);
    free(streamed);
}

enum { N_LISTS = 20 };

/* Catches: ids that differ from the model's own tokenizer (A29: digits, contractions, blanks, CJK,
 * emoji, control tokens), bytes lost on the way back. */
START_TEST(golden_token_lists)
{
    const json_t *lists = json_object_get(golden, "tokens");
    const json_t *row = json_array_get(lists, (size_t)_i);
    const json_t *text = json_object_get(row, "text"), *wanted = json_object_get(row, "ids");
    const char *bytes = json_string_value(text);
    size_t size = json_string_length(text), n;
    int32_t *ids;

    ck_assert_uint_eq(json_array_size(lists), N_LISTS);
    ck_assert_uint_gt(json_array_size(wanted), 0);
    ids = encode(bytes, size, TFM_TOKENIZE_SPECIAL | TFM_TOKENIZE_BOS, &n);
    ck_assert_msg(n == json_array_size(wanted), "'%s': %zu tokens, not %zu", bytes, n,
                  json_array_size(wanted));
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(ids[i] == json_integer_value(json_array_get(wanted, i)),
                      "'%s': token %zu is %d, not %lld", bytes, i, ids[i],
                      (long long)json_integer_value(json_array_get(wanted, i)));
    expect_bytes(ids, n, bytes, size);
    free(ids);
}
END_TEST

/* Catches: what shows in prose only, such as line ends, quotes and words that come again; the list is of
 * a tokenizer written in Python. */
START_TEST(a_page_of_prose)
{
    json_t *json = read_json("long-q4_1.json");
    const json_t *wanted = json_object_get(json, "ids");
    const char *folder = getenv("TFM_TEST_GOLDEN");
    char path[1024], text[65536];
    size_t size, n;
    int32_t *ids;
    FILE *file;

    snprintf(path, sizeof path, "%s/long.txt", folder ? folder : "tests/golden");
    file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    size = fread(text, 1, sizeof text, file);
    fclose(file);
    ids = encode(text, size, 0, &n);
    ck_assert_uint_ge(json_array_size(wanted), 600);
    ck_assert_uint_ge(n, json_array_size(wanted));
    for (size_t i = 0; i < json_array_size(wanted); i++)
        ck_assert_int_eq(ids[i], json_integer_value(json_array_get(wanted, i)));
    expect_bytes(ids, n, text, size);
    free(ids);
    json_decref(json);
}
END_TEST

/* Catches: facts of the file read wrong; control tokens out of content (A31). */
START_TEST(facts_and_control_tokens)
{
    static const char content[] = "<|im_end|>hello<|im_start|>";
    size_t n;
    int32_t *ids = encode(content, sizeof content - 1, 0, &n);

    ck_assert_uint_eq(tfm_tokenizer_vocab(tokenizer), 49152);
    ck_assert_int_eq(tfm_tokenizer_bos(tokenizer), 1);
    ck_assert_int_eq(tfm_tokenizer_eos(tokenizer), 2);
    ck_assert_int_eq(tfm_tokenizer_is_end(tokenizer, 2), 1);
    ck_assert_int_eq(tfm_tokenizer_is_end(tokenizer, 1), 0);
    ck_assert_int_eq(tfm_tokenizer_is_control(tokenizer, 16), 1);
    ck_assert_int_eq(tfm_tokenizer_is_control(tokenizer, 17), 0);
    ck_assert_int_eq(tfm_tokenizer_add_bos(tokenizer), 0);
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(tfm_tokenizer_is_control(tokenizer, ids[i]), 0);
    expect_bytes(ids, n, content, sizeof content - 1);
    free(ids);
    ids = encode(content, sizeof content - 1, TFM_TOKENIZE_SPECIAL, &n);
    ck_assert(ids[0] == 2 && ids[n - 1] == 1);
    free(ids);
}
END_TEST

/* Catches: numbers not cut digit by digit (A29). */
START_TEST(a_year_is_four_tokens)
{
    size_t n;
    int32_t *ids = encode("2024", 4, 0, &n);

    ck_assert_uint_eq(n, 4);
    expect_bytes(ids, n, "2024", 4);
    free(ids);
}
END_TEST

/* Catches: a silent hole: this vocabulary has no token for byte 4. */
START_TEST(a_byte_without_token)
{
    int32_t *ids = NULL;
    size_t n;
    struct tfm_error err;

    ck_assert_int_eq(tfm_tokenizer_encode(tokenizer, "end\4", 4, 0, &ids, &n, &err),
                     TFM_STATUS_UNSUPPORTED);
    ck_assert(strstr(err.text, "0x04") && strstr(err.text, "offset 3"));
    ck_assert_ptr_null(ids);
}
END_TEST

/* Catches: time that grows with the square of a word's length. */
START_TEST(a_megabyte_of_one_letter)
{
    enum { SIZE = 1 << 20 };
    char *text = malloc(SIZE);
    size_t n;
    int32_t *ids;
    clock_t begin = clock();

    ck_assert_ptr_nonnull(text);
    memset(text, 'x', SIZE);
    ids = encode(text, SIZE, 0, &n);
    ck_assert(clock() - begin < 5 * CLOCKS_PER_SEC);
    ck_assert_uint_gt(n, 1000);
    ck_assert_int_eq(ids[0], 31069);
    free(ids);
    free(text);
}
END_TEST

int main(void)
{
    const char *model = getenv("TFM_TEST_MODEL");
    Suite *suite = suite_create("tokenizer_model");
    TCase *tcase = tcase_create("smollm2");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, golden_token_lists, 0, N_LISTS);
    tcase_add_test(tcase, a_page_of_prose);
    tcase_add_test(tcase, facts_and_control_tokens);
    tcase_add_test(tcase, a_year_is_four_tokens);
    tcase_add_test(tcase, a_byte_without_token);
    tcase_add_test(tcase, a_megabyte_of_one_letter);
    suite_add_tcase(suite, tcase);
    if (!model || access(model, R_OK) != 0) {
        srunner_free(runner);
        return tests_skip(
            "no model file: ./quickstart smollm2 fetches it, or name it in TFM_TEST_MODEL");
    }
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
