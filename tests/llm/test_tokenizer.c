/* SPDX-License-Identifier: MIT
 * The tokenizer on a toy vocabulary: written-out tokens, BOS, bad text, bad files. */
#include <stdio.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <check.h>

#include "tests/llm/alloc_watch.h"
#include "tests/llm/toy_vocabulary.h"

/* ids of the toy: 0..255 bytes, then these */
enum {
    HE = 256,
    LL,
    HELL,
    HELLO,
    BLANK_HELLO,
    BOS,
    END,
    AB,   /* control token "<a><b>" */
    A,    /* control token "<a>" */
    USER, /* user-defined "[tool]" */
    UNUSED,
    UNKNOWN,
    LITERAL, /* normal, but not written in the alphabet */
    N_TOY,
};

static struct toy_vocabulary *toy;

static void make_toy(void)
{
    toy = toy_create();
    toy_all_bytes(toy);
    ck_assert_int_eq(toy_merge_text(toy, "h", "e"), HE);
    ck_assert_int_eq(toy_merge_text(toy, "l", "l"), LL);
    ck_assert_int_eq(toy_merge_text(toy, "he", "ll"), HELL);
    ck_assert_int_eq(toy_merge_text(toy, "hell", "o"), HELLO);
    ck_assert_int_eq(toy_merge_text(toy, " ", "hello"), BLANK_HELLO);
    toy_token(toy, "<s>", 3, TOY_CONTROL);
    toy_token(toy, "<end>", 5, TOY_CONTROL);
    toy_token(toy, "<a><b>", 6, TOY_CONTROL);
    toy_token(toy, "<a>", 3, TOY_CONTROL);
    toy_token(toy, "[tool]", 6, TOY_USER);
    toy_token(toy, "unused", 6, TOY_UNUSED);
    toy_token(toy, "<unk>", 5, TOY_UNKNOWN);
    toy_token(toy, "x", 1, TOY_NORMAL);
    free((void *)(uintptr_t)toy->tokens[LITERAL].data);
    toy->tokens[LITERAL] = (struct tfm_text){strdup("two words"), 9};
    ck_assert_uint_eq(toy->n, N_TOY);
}

static void free_toy(void)
{
    toy_free(toy);
}

/* The toy with BOS and ends; add_bos < 0: the key is left out. */
static struct tfm_tokenizer *open_toy(const char *pre, int add_bos)
{
    struct gguf_builder *b = gguf_builder_create();
    struct tfm_tokenizer *t = NULL;
    struct tfm_error err;

    toy_put(toy, pre, b);
    gguf_builder_uint(b, "tokenizer.ggml.bos_token_id", TFM_GGUF_U32, BOS);
    gguf_builder_uint(b, "tokenizer.ggml.eos_token_id", TFM_GGUF_U32, END);
    gguf_builder_uint(b, "tokenizer.ggml.eom_token_id", TFM_GGUF_U32, A);
    if (add_bos >= 0)
        gguf_builder_bool(b, "tokenizer.ggml.add_bos_token", add_bos);
    ck_assert_msg(toy_open(b, &t, &err) == TFM_STATUS_OK, "%s", err.text);
    gguf_builder_destroy(b);
    return t;
}

/* Encodes and compares; `wanted` ends with -1. */
static void expect(const struct tfm_tokenizer *t, const char *text, size_t size, unsigned flags,
                   const int32_t *wanted)
{
    int32_t *ids = NULL;
    size_t n = 0, n_wanted = 0;
    struct tfm_error err;

    ck_assert_msg(tfm_tokenizer_encode(t, text, size, flags, &ids, &n, &err) == TFM_STATUS_OK,
                  "'%s': %s", text, err.text);
    ck_assert_ptr_nonnull(ids);
    while (wanted[n_wanted] >= 0)
        n_wanted++;
    ck_assert_msg(n == n_wanted, "'%s' flags %u: %zu tokens, not %zu", text, flags, n, n_wanted);
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(ids[i] == wanted[i], "'%s' flags %u: token %zu is %d, not %d", text, flags, i,
                      ids[i], wanted[i]);
    free(ids);
}

static const struct {
    const char *text;
    unsigned flags;
    int add_bos;
    int32_t ids[16];
} texts[] = {
    {"", 0, 0, {-1}},
    {"hello hello", 0, 0, {HELLO, BLANK_HELLO, -1}},
    {"hellhe", 0, 0, {HELL, HE, -1}},
    /* A31: what is written in content is no control token */
    {"<s>", 0, 0, {'<', 's', '>', -1}},
    {"<end>hello", 0, 0, {'<', 'e', 'n', 'd', '>', HELLO, -1}},
    {"<s>", TFM_TOKENIZE_SPECIAL, 0, {BOS, -1}},
    {"<end>hello<s>", TFM_TOKENIZE_SPECIAL, 0, {END, HELLO, BOS, -1}},
    {"<unk>", 0, 0, {'<', 'u', 'n', 'k', '>', -1}},
    {"<unk>", TFM_TOKENIZE_SPECIAL, 0, {UNKNOWN, -1}},
    {"unused", TFM_TOKENIZE_SPECIAL, 0, {'u', 'n', 'u', 's', 'e', 'd', -1}},
    /* the longest one wins, and a part of one is text */
    {"<a><b>", TFM_TOKENIZE_SPECIAL, 0, {AB, -1}},
    {"<a><b", TFM_TOKENIZE_SPECIAL, 0, {A, '<', 'b', -1}},
    {"<a><a><b>", TFM_TOKENIZE_SPECIAL, 0, {A, AB, -1}},
    {"<<a>", TFM_TOKENIZE_SPECIAL, 0, {'<', A, -1}},
    {"<a", TFM_TOKENIZE_SPECIAL, 0, {'<', 'a', -1}},
    /* user-defined tokens are always recognized */
    {"hello[tool]", 0, 0, {HELLO, USER, -1}},
    {"[tool][tool", 0, 0, {USER, '[', 't', 'o', 'o', 'l', -1}},
    /* the splitter must not see the token behind it: all three blanks are one word */
    {"   <s>", TFM_TOKENIZE_SPECIAL, 0, {' ', ' ', ' ', BOS, -1}},
    {" hello<s> hello", TFM_TOKENIZE_SPECIAL, 0, {BLANK_HELLO, BOS, BLANK_HELLO, -1}},
    /* A31: exactly one BOS */
    {"hello", TFM_TOKENIZE_BOS, 0, {HELLO, -1}},
    {"hello", 0, 1, {HELLO, -1}},
    {"hello", TFM_TOKENIZE_BOS, 1, {BOS, HELLO, -1}},
    {"", TFM_TOKENIZE_BOS, 1, {BOS, -1}},
    {"<s>hello", TFM_TOKENIZE_BOS | TFM_TOKENIZE_SPECIAL, 1, {BOS, HELLO, -1}},
    {"<s>", TFM_TOKENIZE_BOS | TFM_TOKENIZE_SPECIAL, 1, {BOS, -1}},
    {"<s><s>", TFM_TOKENIZE_BOS | TFM_TOKENIZE_SPECIAL, 1, {BOS, BOS, -1}},
    {"<end>", TFM_TOKENIZE_BOS | TFM_TOKENIZE_SPECIAL, 1, {BOS, END, -1}},
    {"<s>", TFM_TOKENIZE_BOS, 1, {BOS, '<', 's', '>', -1}},
};

/* Catches: control tokens out of content, two BOS or none, the shortest match, fragments that see each
 * other. */
START_TEST(written_out_tokens)
{
    struct tfm_tokenizer *t = open_toy("smollm", texts[_i].add_bos);

    expect(t, texts[_i].text, strlen(texts[_i].text), texts[_i].flags, texts[_i].ids);
    tfm_tokenizer_destroy(t);
}
END_TEST

/* Catches: a text that ends at its first NUL, a read behind its end (the text is not terminated). */
START_TEST(nul_bytes_and_exact_size)
{
    struct tfm_tokenizer *t = open_toy("smollm", 0);
    char *text = malloc(7);

    ck_assert_ptr_nonnull(text);
    memcpy(text, "\0hello\0", 7);
    expect(t, text, 7, TFM_TOKENIZE_SPECIAL, (const int32_t[]){0, HELLO, 0, -1});
    expect(t, text + 1, 5, 0, (const int32_t[]){HELLO, -1});
    free(text);
    expect(t, NULL, 0, TFM_TOKENIZE_SPECIAL, (const int32_t[]){-1});
    tfm_tokenizer_destroy(t);
}
END_TEST

/* Catches: an id out of range that reaches memory (A06), wrong bytes of a piece, wrong kinds. */
START_TEST(facts_about_tokens)
{
    static const int32_t bad[] = {-1, N_TOY, INT32_MIN, INT32_MAX};
    struct tfm_tokenizer *t = open_toy("smollm", -1);
    struct tfm_text piece = {"untouched", 9};
    struct tfm_error err;

    ck_assert_uint_eq(tfm_tokenizer_vocab(t), N_TOY);
    ck_assert_int_eq(tfm_tokenizer_bos(t), BOS);
    ck_assert_int_eq(tfm_tokenizer_eos(t), END);
    ck_assert_int_eq(tfm_tokenizer_add_bos(t), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", bad[i]);
        ck_assert_int_eq(tfm_tokenizer_piece(t, bad[i], &piece, &err), TFM_STATUS_OUT_OF_RANGE);
        ck_assert_ptr_nonnull(strstr(err.text, number));
        ck_assert_uint_eq(piece.size, 9);
        ck_assert_int_eq(tfm_tokenizer_is_control(t, bad[i]), 0);
        ck_assert_int_eq(tfm_tokenizer_is_end(t, bad[i]), 0);
    }
    for (int32_t id = 0; id < N_TOY; id++) {
        struct tfm_text wanted = id == LITERAL ? toy->tokens[id] : toy->bytes[id];
        ck_assert_int_eq(tfm_tokenizer_piece(t, id, &piece, &err), TFM_STATUS_OK);
        ck_assert(piece.size == wanted.size && memcmp(piece.data, wanted.data, piece.size) == 0);
        ck_assert_int_eq(tfm_tokenizer_is_end(t, id), id == END || id == A);
        ck_assert_int_eq(tfm_tokenizer_is_control(t, id),
                         id == BOS || id == END || id == AB || id == A || id == UNKNOWN);
    }
    tfm_tokenizer_destroy(t);
}
END_TEST

/* Catches: no end at an absent token, -1 taken for one. */
START_TEST(no_special_ids)
{
    struct tfm_tokenizer *t = toy_tokenizer(toy, "gpt-2");

    ck_assert_int_eq(tfm_tokenizer_bos(t), -1);
    ck_assert_int_eq(tfm_tokenizer_eos(t), -1);
    ck_assert_int_eq(tfm_tokenizer_is_end(t, -1), 0);
    ck_assert_int_eq(tfm_tokenizer_is_end(t, 0), 0);
    tfm_tokenizer_destroy(t);
}
END_TEST

/* Catches: llama-bpe merging a word that is a token, and forgetting its BOS. */
START_TEST(whole_words_of_llama_bpe)
{
    struct tfm_tokenizer *t;
    int32_t word = toy_token(toy, "elhl", 4, TOY_NORMAL); /* no merge makes it */

    t = open_toy("llama-bpe", -1);
    ck_assert_int_eq(tfm_tokenizer_add_bos(t), 1);
    expect(t, "elhl", 4, 0, (const int32_t[]){word, -1});
    expect(t, "elhlx", 5, 0, (const int32_t[]){'e', 'l', 'h', 'l', 'x', -1});
    tfm_tokenizer_destroy(t);
    t = open_toy("gpt-2", -1);
    expect(t, "elhl", 4, 0, (const int32_t[]){'e', 'l', 'h', 'l', -1});
    tfm_tokenizer_destroy(t);
}
END_TEST

static const struct {
    const char *text;
    size_t size, offset;
} not_utf8[] = {
    {"\x80", 1, 0},                     /* continuation first */
    {"abc\xff", 4, 3},                  /* never in UTF-8 */
    {"abcdefgh\xfe", 9, 8},             /* behind eight at once */
    {"\xc0\xaf", 2, 0},                 /* overlong / */
    {"\xc1\xbf", 2, 0},                 /* overlong */
    {"\xe0\x9f\xbf", 3, 0},             /* overlong */
    {"\xf0\x8f\xbf\xbf", 4, 0},         /* overlong */
    {"x\xed\xa0\x80", 4, 1},            /* surrogate */
    {"\xf4\x90\x80\x80", 4, 0},         /* above U+10FFFF */
    {"\xf5\x80\x80\x80", 4, 0},         /* above U+10FFFF */
    {"ab\xc3", 3, 2},                   /* cut */
    {"ab\xe2\x82", 4, 2},               /* cut */
    {"\xf0\x9f\x98", 3, 0},             /* cut */
    {"\xc3(", 2, 0},                    /* second byte missing */
    {"\xe2\x82(", 3, 0},                /* third byte missing */
    {"\xf0\x9f\x98(", 4, 0},            /* fourth byte missing */
    {"\xc3\xa9 ok \xe2\x28\xa1", 9, 6}, /* after good text */
};

/* Catches: bad text taken, or refused without the place. */
START_TEST(invalid_utf8)
{
    struct tfm_tokenizer *t = open_toy("smollm", 0);
    int32_t *ids = NULL;
    size_t n = 4711;
    struct tfm_error err;
    char offset[32];

    snprintf(offset, sizeof offset, "offset %zu ", not_utf8[_i].offset);
    for (unsigned flags = 0; flags < 4; flags++) {
        ck_assert_int_eq(
            tfm_tokenizer_encode(t, not_utf8[_i].text, not_utf8[_i].size, flags, &ids, &n, &err),
            TFM_STATUS_FORMAT);
        ck_assert_ptr_null(ids);
        ck_assert_uint_eq(n, 4711);
        ck_assert_msg(strstr(err.text, offset) != NULL, "%s: %s", offset, err.text);
    }
    tfm_tokenizer_destroy(t);
}
END_TEST

/* Catches: a byte that the vocabulary lacks left out in silence, or taken for token -1. */
START_TEST(bytes_without_a_token)
{
    struct toy_vocabulary *small = toy_create();
    struct tfm_tokenizer *t;
    int32_t *ids = NULL;
    size_t n;
    struct tfm_error err;

    toy_token(small, "a", 1, TOY_NORMAL);
    toy_token(small, "b", 1, TOY_NORMAL);
    t = toy_tokenizer(small, "smollm");
    expect(t, "abba", 4, 0, (const int32_t[]){0, 1, 1, 0, -1});
    ck_assert_int_eq(tfm_tokenizer_encode(t, "ab\4", 3, 0, &ids, &n, &err), TFM_STATUS_UNSUPPORTED);
    ck_assert(strstr(err.text, "0x04") && strstr(err.text, "offset 2 "));
    ck_assert_ptr_null(ids);
    tfm_tokenizer_destroy(t);
    toy_free(small);
}
END_TEST

/* Catches: an int where a size belongs: the text is never looked at. */
START_TEST(text_above_the_limit)
{
    struct tfm_tokenizer *t = open_toy("smollm", 0);
    int32_t *ids = NULL;
    size_t n;
    struct tfm_error err;

    ck_assert_int_eq(tfm_tokenizer_encode(t, "x", (size_t)INT32_MAX + 1, 0, &ids, &n, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(err.text, "2147483648"));
    ck_assert_int_eq(tfm_tokenizer_encode(t, "x", SIZE_MAX, 0, &ids, &n, &err),
                     TFM_STATUS_INVALID_ARGUMENT);
    ck_assert_ptr_null(ids);
    tfm_tokenizer_destroy(t);
}
END_TEST

/* ---- files ---- */
static void put_without(struct gguf_builder *b, const char *left_out)
{
    static const char *const strings[][2] = {{"tokenizer.ggml.model", "gpt2"},
                                             {"tokenizer.ggml.pre", "smollm"}};
    for (size_t i = 0; i < 2; i++)
        if (strcmp(strings[i][0], left_out) != 0)
            gguf_builder_string(b, strings[i][0], strings[i][1]);
    if (strcmp("tokenizer.ggml.tokens", left_out) != 0)
        gguf_builder_texts(b, "tokenizer.ggml.tokens", toy->tokens, toy->n);
    if (strcmp("tokenizer.ggml.token_type", left_out) != 0)
        gguf_builder_array(b, "tokenizer.ggml.token_type", TFM_GGUF_I32, toy->types, toy->n);
    if (strcmp("tokenizer.ggml.merges", left_out) != 0)
        gguf_builder_texts(b, "tokenizer.ggml.merges", toy->merges, toy->n_merges);
}
static void no_model(struct gguf_builder *b)
{
    put_without(b, "tokenizer.ggml.model");
}
static void no_pre(struct gguf_builder *b)
{
    put_without(b, "tokenizer.ggml.pre");
}
static void no_tokens(struct gguf_builder *b)
{
    put_without(b, "tokenizer.ggml.tokens");
}
static void no_merges(struct gguf_builder *b)
{
    put_without(b, "tokenizer.ggml.merges");
}
static void other_model(struct gguf_builder *b)
{
    put_without(b, "tokenizer.ggml.model");
    gguf_builder_string(b, "tokenizer.ggml.model", "llama");
}
static void model_number(struct gguf_builder *b)
{
    put_without(b, "tokenizer.ggml.model");
    gguf_builder_uint(b, "tokenizer.ggml.model", TFM_GGUF_U32, 2);
}
static void other_pre(struct gguf_builder *b)
{
    put_without(b, "tokenizer.ggml.pre");
    gguf_builder_string(b, "tokenizer.ggml.pre", "smollm\033[0m");
}
static void part_of_pre(struct gguf_builder *b)
{
    put_without(b, "tokenizer.ggml.pre");
    gguf_builder_string(b, "tokenizer.ggml.pre", "smol");
}
static void tokens_numbers(struct gguf_builder *b)
{
    put_without(b, "tokenizer.ggml.tokens");
    gguf_builder_array(b, "tokenizer.ggml.tokens", TFM_GGUF_I32, toy->types, toy->n);
}
static void tokens_none(struct gguf_builder *b)
{
    put_without(b, "tokenizer.ggml.tokens");
    gguf_builder_texts(b, "tokenizer.ggml.tokens", NULL, 0);
}
static void types_short(struct gguf_builder *b)
{
    put_without(b, "tokenizer.ggml.token_type");
    gguf_builder_array(b, "tokenizer.ggml.token_type", TFM_GGUF_I32, toy->types, toy->n - 1);
}
static void types_floats(struct gguf_builder *b) /* the bits of other numbers */
{
    put_without(b, "tokenizer.ggml.token_type");
    gguf_builder_array(b, "tokenizer.ggml.token_type", TFM_GGUF_F32, toy->types, toy->n);
}
static void types_zero(struct gguf_builder *b)
{
    toy->types[5] = 0;
    put_without(b, "");
}
static void types_large(struct gguf_builder *b)
{
    toy->types[6] = 7;
    put_without(b, "");
}
static void token_twice(struct gguf_builder *b)
{
    toy_token(toy, "hello", 5, TOY_NORMAL);
    put_without(b, "");
}
static void token_too_long(struct gguf_builder *b)
{
    static const char zeros[1025] = {0};
    toy_token(toy, zeros, sizeof zeros, TOY_CONTROL);
    put_without(b, "");
}
static void change_merge(struct gguf_builder *b, const char *merge)
{
    free((void *)(uintptr_t)toy->merges[2].data);
    toy->merges[2] = (struct tfm_text){strdup(merge), strlen(merge)};
    put_without(b, "");
}
static void merge_no_blank(struct gguf_builder *b)
{
    change_merge(b, "hell");
}
static void merge_empty(struct gguf_builder *b)
{
    change_merge(b, "");
}
static void merge_no_left(struct gguf_builder *b)
{
    change_merge(b, " ll");
}
static void merge_no_right(struct gguf_builder *b)
{
    change_merge(b, "he ");
}
static void merge_three(struct gguf_builder *b)
{
    change_merge(b, "he l l");
}
static void merge_unknown_left(struct gguf_builder *b)
{
    change_merge(b, "hq ll");
}
static void merge_unknown_right(struct gguf_builder *b)
{
    change_merge(b, "he lq");
}
static void merge_unknown_result(struct gguf_builder *b)
{
    change_merge(b, "ll he");
}
static void merge_twice(struct gguf_builder *b)
{
    change_merge(b, "h e");
}
static void merge_bad_alphabet(struct gguf_builder *b)
{
    change_merge(b, "he \xf0\x9f\x98\x80");
}
static void merges_numbers(struct gguf_builder *b)
{
    put_without(b, "tokenizer.ggml.merges");
    gguf_builder_array(b, "tokenizer.ggml.merges", TFM_GGUF_I32, toy->types, 4);
}
static void bos_outside(struct gguf_builder *b)
{
    put_without(b, "");
    gguf_builder_uint(b, "tokenizer.ggml.bos_token_id", TFM_GGUF_U32, N_TOY);
}
static void eos_negative(struct gguf_builder *b)
{
    put_without(b, "");
    gguf_builder_uint(b, "tokenizer.ggml.eos_token_id", TFM_GGUF_I32, (uint64_t)-1);
}
static void eot_huge(struct gguf_builder *b) /* 0 where it is cut to 32 bits */
{
    put_without(b, "");
    gguf_builder_uint(b, "tokenizer.ggml.eot_token_id", TFM_GGUF_U64, UINT64_C(1) << 32);
}
static void add_bos_without_bos(struct gguf_builder *b)
{
    put_without(b, "");
    gguf_builder_bool(b, "tokenizer.ggml.add_bos_token", 1);
}
static void add_bos_number(struct gguf_builder *b)
{
    put_without(b, "");
    gguf_builder_uint(b, "tokenizer.ggml.add_bos_token", TFM_GGUF_U32, 0);
}

static const struct {
    void (*make)(struct gguf_builder *builder);
    enum tfm_status status;
    const char *says[2];
} bad_files[] = {
    {no_model, TFM_STATUS_FORMAT, {"tokenizer.ggml.model", "no key"}},
    {no_pre, TFM_STATUS_FORMAT, {"tokenizer.ggml.pre", "no key"}},
    {no_tokens, TFM_STATUS_FORMAT, {"tokenizer.ggml.tokens", "no key"}},
    {no_merges, TFM_STATUS_FORMAT, {"tokenizer.ggml.merges", "no key"}},
    {other_model, TFM_STATUS_UNSUPPORTED, {"'llama'", "known: gpt2"}},
    {model_number, TFM_STATUS_FORMAT, {"tokenizer.ggml.model", "u32"}},
    {other_pre, TFM_STATUS_UNSUPPORTED, {"'smollm\\x1b[0m'", "known: smollm, gpt-2, llama-bpe"}},
    {part_of_pre, TFM_STATUS_UNSUPPORTED, {"'smol'", "known: smollm"}},
    {tokens_numbers, TFM_STATUS_FORMAT, {"tokenizer.ggml.tokens", "must be string"}},
    {tokens_none, TFM_STATUS_FORMAT, {"tokenizer.ggml.tokens", "0 elements"}},
    {types_short, TFM_STATUS_FORMAT, {"tokenizer.ggml.token_type has 268", "269 tokens"}},
    {types_floats, TFM_STATUS_FORMAT, {"tokenizer.ggml.token_type", "must be integers"}},
    {types_zero, TFM_STATUS_FORMAT, {"token 5", "is 0"}},
    {types_large, TFM_STATUS_FORMAT, {"token 6", "is 7"}},
    {token_twice, TFM_STATUS_FORMAT, {"tokens 259 and 269", "'hello'"}},
    {token_too_long, TFM_STATUS_FORMAT, {"token 269", "1025 bytes"}},
    {merge_no_blank, TFM_STATUS_FORMAT, {"merge 2 'hell'", "blank between"}},
    {merge_empty, TFM_STATUS_FORMAT, {"merge 2 ''", "blank between"}},
    {merge_no_left, TFM_STATUS_FORMAT, {"merge 2 ' ll'", "blank between"}},
    {merge_no_right, TFM_STATUS_FORMAT, {"merge 2 'he '", "blank between"}},
    {merge_three, TFM_STATUS_FORMAT, {"merge 2 'he l l'", "blank between"}},
    {merge_unknown_left, TFM_STATUS_FORMAT, {"merge 2 'hq ll'", "left half"}},
    {merge_unknown_right, TFM_STATUS_FORMAT, {"merge 2 'he lq'", "right half"}},
    {merge_unknown_result, TFM_STATUS_FORMAT, {"merge 2 'll he'", "result"}},
    {merge_twice, TFM_STATUS_FORMAT, {"merge 2 'h e'", "twice"}},
    {merge_bad_alphabet, TFM_STATUS_FORMAT, {"merge 2", "blank between"}},
    {merges_numbers, TFM_STATUS_FORMAT, {"tokenizer.ggml.merges", "must be string"}},
    {bos_outside, TFM_STATUS_FORMAT, {"tokenizer.ggml.bos_token_id is 269", "269 tokens"}},
    {eos_negative, TFM_STATUS_FORMAT, {"tokenizer.ggml.eos_token_id", "-1"}},
    {eot_huge, TFM_STATUS_FORMAT, {"tokenizer.ggml.eot_token_id is 4294967296", "269 tokens"}},
    {add_bos_without_bos, TFM_STATUS_FORMAT, {"BOS", "tokenizer.ggml.bos_token_id"}},
    {add_bos_number, TFM_STATUS_FORMAT, {"tokenizer.ggml.add_bos_token", "u32"}},
};

/* Catches: each row accepted, or refused without saying what and where. */
START_TEST(files_that_contradict)
{
    struct gguf_builder *b = gguf_builder_create();
    struct tfm_tokenizer *t = NULL;
    struct tfm_error err;
    enum tfm_status status;

    bad_files[_i].make(b);
    status = toy_open(b, &t, &err);
    ck_assert_msg(status == bad_files[_i].status, "row %d: %s: %s", _i, tfm_status_name(status),
                  err.text);
    ck_assert_ptr_null(t);
    ck_assert_msg(strncmp(err.text, "toy.gguf: ", 10) == 0 &&
                      strstr(err.text, bad_files[_i].says[0]) &&
                      strstr(err.text, bad_files[_i].says[1]),
                  "row %d: %s", _i, err.text);
    gguf_builder_destroy(b);
}
END_TEST

/* Catches: old files without token_type refused. */
START_TEST(types_may_be_absent)
{
    struct gguf_builder *b = gguf_builder_create();
    struct tfm_tokenizer *t = NULL;
    struct tfm_error err;

    put_without(b, "tokenizer.ggml.token_type");
    ck_assert_msg(toy_open(b, &t, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_int_eq(tfm_tokenizer_is_control(t, BOS), 0);
    tfm_tokenizer_destroy(t);
    gguf_builder_destroy(b);
}
END_TEST

/* A vocabulary with little in it, so that all its bytes can be tried. */
static unsigned char *small_file(size_t *size)
{
    struct gguf_builder *b = gguf_builder_create();
    struct toy_vocabulary *small = toy_create();
    unsigned char *file;

    toy_token(small, "a", 1, TOY_NORMAL);
    toy_token(small, "b", 1, TOY_NORMAL);
    toy_token(small, " ", 1, TOY_NORMAL);
    toy_token(small, "<s>", 3, TOY_CONTROL);
    toy_token(small, "[u]", 3, TOY_USER);
    toy_merge_text(small, "a", "b");
    toy_merge_text(small, " ", "ab");
    toy_put(small, "smollm", b);
    gguf_builder_uint(b, "tokenizer.ggml.bos_token_id", TFM_GGUF_U32, 3);
    gguf_builder_bool(b, "tokenizer.ggml.add_bos_token", 1);
    file = gguf_builder_finish(b, size);
    toy_free(small);
    gguf_builder_destroy(b);
    return file;
}

static enum tfm_status open_and_encode(const unsigned char *file, size_t size, int32_t **ids,
                                       size_t *n)
{
    struct tfm_gguf *gguf = NULL;
    struct tfm_tokenizer *t = NULL;
    enum tfm_status status = tfm_gguf_open_memory(file, size, "small", &gguf, NULL);

    if (status == TFM_STATUS_OK)
        status = tfm_tokenizer_create(gguf, &t, NULL);
    tfm_gguf_close(gguf);
    if (status == TFM_STATUS_OK)
        status = tfm_tokenizer_encode(t, "ab[u] ab<s>ba", 13,
                                      TFM_TOKENIZE_SPECIAL | TFM_TOKENIZE_BOS, ids, n, NULL);
    tfm_tokenizer_destroy(t);
    return status;
}

/* Catches: any changed byte that crashes, with a sanitizer any that makes behaviour undefined. */
START_TEST(every_byte_changed)
{
    size_t size, accepted = 0, n;
    unsigned char *file = small_file(&size);

    for (size_t at = 0; at < size; at++)
        for (int change = 0; change < 10; change++) {
            unsigned char before = file[at];
            int32_t *ids = NULL;
            file[at] = change < 8 ? (unsigned char)(before ^ 1 << change) : change == 8 ? 0 : 0xff;
            if (open_and_encode(file, size, &ids, &n) == TFM_STATUS_OK)
                accepted++;
            free(ids);
            file[at] = before;
        }
    ck_assert_uint_gt(accepted, 0);
    free(file);
}
END_TEST

/* Catches: a leak or a pointer that was never set freed, when any allocation fails. */
START_TEST(out_of_memory_anywhere)
{
    size_t size, n;
    unsigned char *file = small_file(&size);
    int32_t *ids = NULL;
    enum tfm_status status = TFM_STATUS_NOMEM;
    long failing = 0;

    for (; status != TFM_STATUS_OK; failing++) {
        alloc_watch_begin(failing);
        status = open_and_encode(file, size, &ids, &n);
        alloc_watch_end();
        if (status != TFM_STATUS_OK) {
            ck_assert_int_eq(status, TFM_STATUS_NOMEM);
            ck_assert_ptr_null(ids);
        }
    }
    ck_assert_int_gt(failing, 14);
    ck_assert_uint_eq(n, 7);
    free(ids);
    free(file);
}
END_TEST

/* Catches: working memory that is not freed when a text of any length fails half-way. */
START_TEST(out_of_memory_in_a_long_text)
{
    enum { SIZE = 40000 };
    struct tfm_tokenizer *t = open_toy("smollm", 1);
    char *text = malloc(SIZE);
    int32_t *ids = NULL;
    size_t n = 0;
    enum tfm_status status = TFM_STATUS_NOMEM;
    long failing = 0;

    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < SIZE; i++)
        text[i] = "hello "[i < SIZE / 2 ? i % 6 : i % 5]; /* words, then one long one */
    for (; status != TFM_STATUS_OK; failing++) {
        alloc_watch_begin(failing);
        status = tfm_tokenizer_encode(t, text, SIZE, TFM_TOKENIZE_BOS, &ids, &n, NULL);
        alloc_watch_end();
        ck_assert(status == TFM_STATUS_OK || (status == TFM_STATUS_NOMEM && !ids));
    }
    ck_assert_int_gt(failing, 3);
    free(ids);
    free(text);
    tfm_tokenizer_destroy(t);
}
END_TEST

/* Catches: time that grows with the square of a word's length, or with the number of tokens that could
 * begin anywhere. */
START_TEST(long_texts_take_no_time)
{
    enum { SIZE = 1 << 20 };
    static const char *const patterns[] = {"x", "hello", "l", " ", "<", "<a><", "[tool]", "\n \t"};
    struct tfm_tokenizer *t = open_toy("smollm", 0);
    char *text = malloc(SIZE);
    int32_t *ids;
    size_t n, bytes;
    clock_t begin = clock();

    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < SIZE; i++)
        text[i] = patterns[_i][i % strlen(patterns[_i])];
    ck_assert_int_eq(tfm_tokenizer_encode(t, text, SIZE, TFM_TOKENIZE_SPECIAL, &ids, &n, NULL),
                     TFM_STATUS_OK);
    ck_assert_msg(clock() - begin < 5 * CLOCKS_PER_SEC, "'%s' took %.1f s", patterns[_i],
                  (double)(clock() - begin) / CLOCKS_PER_SEC);
    /* one assertion for all: each costs a system call */
    bytes = 0;
    for (size_t i = 0; i < n; i++) {
        struct tfm_text piece;
        if (tfm_tokenizer_piece(t, ids[i], &piece, NULL) != TFM_STATUS_OK ||
            piece.size > SIZE - bytes || memcmp(text + bytes, piece.data, piece.size) != 0)
            break;
        bytes += piece.size;
    }
    ck_assert_uint_eq(bytes, SIZE);
    free(ids);
    free(text);
    tfm_tokenizer_destroy(t);
}
END_TEST

struct task {
    const struct tfm_tokenizer *tokenizer;
    char text[20000];
    int32_t *ids;
    size_t n;
};

static void *encode_often(void *argument)
{
    struct task *task = argument;

    for (int i = 0; i < 20; i++) {
        free(task->ids);
        task->ids = NULL;
        if (tfm_tokenizer_encode(task->tokenizer, task->text, sizeof task->text,
                                 TFM_TOKENIZE_SPECIAL, &task->ids, &task->n, NULL) != TFM_STATUS_OK)
            return "failed";
    }
    return NULL;
}

/* Catches: state inside of the tokenizer that calls share. */
START_TEST(threads_share_a_tokenizer)
{
    enum { N = 4 };
    struct tfm_tokenizer *t = open_toy("smollm", 0);
    struct task *tasks = calloc(N, sizeof *tasks);
    pthread_t threads[N];

    ck_assert_ptr_nonnull(tasks);
    for (size_t k = 0; k < N; k++) {
        tasks[k].tokenizer = t;
        for (size_t i = 0; i < sizeof tasks[k].text; i++)
            tasks[k].text[i] = "hello <s>lehel 12"[(i * (k + 1)) % 17];
        ck_assert_int_eq(pthread_create(&threads[k], NULL, encode_often, &tasks[k]), 0);
    }
    for (size_t k = 0; k < N; k++) {
        void *result;
        int32_t *ids;
        size_t n;
        ck_assert_int_eq(pthread_join(threads[k], &result), 0);
        ck_assert_ptr_null(result);
        ck_assert_int_eq(tfm_tokenizer_encode(t, tasks[k].text, sizeof tasks[k].text,
                                              TFM_TOKENIZE_SPECIAL, &ids, &n, NULL),
                         TFM_STATUS_OK);
        ck_assert_uint_eq(n, tasks[k].n);
        ck_assert_int_eq(memcmp(ids, tasks[k].ids, n * sizeof *ids), 0);
        free(ids);
        free(tasks[k].ids);
    }
    free(tasks);
    tfm_tokenizer_destroy(t);
}
END_TEST

#define ROWS(table) ((int)(sizeof(table) / sizeof *(table)))

int main(void)
{
    Suite *suite = suite_create("tokenizer");
    TCase *tcase = tcase_create("toy");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, make_toy, free_toy);
    tcase_add_loop_test(tcase, written_out_tokens, 0, ROWS(texts));
    tcase_add_test(tcase, nul_bytes_and_exact_size);
    tcase_add_test(tcase, facts_about_tokens);
    tcase_add_test(tcase, no_special_ids);
    tcase_add_test(tcase, whole_words_of_llama_bpe);
    tcase_add_loop_test(tcase, invalid_utf8, 0, ROWS(not_utf8));
    tcase_add_test(tcase, bytes_without_a_token);
    tcase_add_test(tcase, text_above_the_limit);
    tcase_add_loop_test(tcase, files_that_contradict, 0, ROWS(bad_files));
    tcase_add_test(tcase, types_may_be_absent);
    tcase_add_test(tcase, every_byte_changed);
    tcase_add_test(tcase, out_of_memory_anywhere);
    tcase_add_test(tcase, out_of_memory_in_a_long_text);
    tcase_add_loop_test(tcase, long_texts_take_no_time, 0, 8);
    tcase_add_test(tcase, threads_share_a_tokenizer);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
