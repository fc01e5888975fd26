/* SPDX-License-Identifier: MIT
 * Training a vocabulary, against the plainest form of the algorithm on random texts, against merges that
 * the Python package tokenizers learnt, and what must be refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>
#include <jansson.h>

#include <tfm/bpe_train.h>
#include <tfm/tokenizer.h>

static uint64_t state;

static size_t below(size_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % n);
}

static struct tfm_gguf *to_gguf(const struct tfm_bpe_trainer *trainer, void **memory)
{
    struct tfm_gguf_writer *writer = NULL;
    struct tfm_gguf *gguf = NULL;
    struct tfm_error err = {0};
    size_t size;

    ck_assert_int_eq(tfm_gguf_writer_create(&writer, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_bpe_trainer_put(trainer, writer, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_gguf_writer_bytes(writer, memory, &size, &err), TFM_STATUS_OK);
    ck_assert_msg(tfm_gguf_open_memory(*memory, size, "trained", &gguf, &err) == TFM_STATUS_OK,
                  "%s", err.text);
    tfm_gguf_writer_destroy(writer);
    return gguf;
}

/* The merges as "left right" in the alphabet. */
static struct tfm_text *merges_of(const struct tfm_gguf *gguf, size_t *n)
{
    struct tfm_gguf_array array;
    struct tfm_text *texts;

    ck_assert_int_eq(tfm_gguf_get_array(gguf, "tokenizer.ggml.merges", &array, NULL),
                     TFM_STATUS_OK);
    *n = array.count;
    texts = calloc(array.count + 1, sizeof *texts);
    ck_assert_ptr_nonnull(texts);
    ck_assert_int_eq(tfm_gguf_array_text(&array, texts, NULL), TFM_STATUS_OK);
    return texts;
}

/* ---- the plainest form: count all pairs anew for every merge ---- */

enum { PLAIN_VOCAB = 400, PLAIN_WORDS = 300, PLAIN_WORD = 24 };

struct plain {
    char tokens[PLAIN_VOCAB][64]; /* only letters are used, which stand for themselves */
    int n, first;
    int words[PLAIN_WORDS][PLAIN_WORD], sizes[PLAIN_WORDS], n_words;
    int merges[1000][3], n_merges;
};

/* The token of left and right together. */
static int plain_token(struct plain *p, const char *left, const char *right)
{
    char text[sizeof p->tokens[0]] = "";
    const size_t size = strlen(left);

    ck_assert_uint_lt(size + strlen(right), sizeof text);
    memcpy(text, left, size);
    memcpy(text + size, right, strlen(right));
    for (int i = p->first; i < p->n; i++)
        if (strcmp(p->tokens[i], text) == 0)
            return i;
    memcpy(p->tokens[p->n], text, sizeof text);
    return p->n++;
}

static int plain_rank(const struct plain *p, int left, int right)
{
    for (int i = 0; i < p->n_merges; i++)
        if (p->merges[i][0] == left && p->merges[i][1] == right)
            return i;
    return -1;
}

static void plain_apply(struct plain *p, int left, int right, int id)
{
    for (int w = 0; w < p->n_words; w++) {
        int out = 0, *word = p->words[w];
        for (int i = 0; i < p->sizes[w]; i++)
            if (i + 1 < p->sizes[w] && word[i] == left && word[i + 1] == right) {
                word[out++] = id;
                i++;
            } else {
                word[out++] = word[i];
            }
        p->sizes[w] = out;
    }
}

/* One step. Returns 0 when no pair occurs twice. */
static int plain_step(struct plain *p)
{
    static int counts[PLAIN_VOCAB][PLAIN_VOCAB];
    int best = 0, left = 0, right = 0, rank = -1;

    memset(counts, 0, sizeof counts);
    for (int w = 0; w < p->n_words; w++)
        for (int i = 0; i + 1 < p->sizes[w]; i++)
            counts[p->words[w][i]][p->words[w][i + 1]]++;
    for (int i = 0; i < p->n; i++)
        for (int j = 0; j < p->n; j++) {
            const int learnt = counts[i][j] ? plain_rank(p, i, j) : -1;
            if (learnt >= 0 && (rank < 0 || learnt < rank)) {
                rank = learnt;
                left = i;
                right = j;
            }
            if (rank < 0 && counts[i][j] > best) {
                best = counts[i][j];
                left = i;
                right = j;
            }
        }
    if (rank >= 0) {
        plain_apply(p, left, right, p->merges[rank][2]);
        return 1;
    }
    if (best < 2)
        return 0;
    p->merges[p->n_merges][0] = left;
    p->merges[p->n_merges][1] = right;
    p->merges[p->n_merges][2] = plain_token(p, p->tokens[left], p->tokens[right]);
    p->n_merges++;
    plain_apply(p, left, right, p->merges[p->n_merges - 1][2]);
    return 1;
}

/* Random words of few letters, with lines between them: many ties, runs of one letter, and several ways to
 * the same token. Lines are words of their own. */
static char *random_text(struct plain *p)
{
    const size_t letters = 1 + below(4), longest = 2 + below(PLAIN_WORD - 2);
    char *text = malloc(PLAIN_WORDS * (PLAIN_WORD + 1) + 1);
    size_t n = 0;

    ck_assert_ptr_nonnull(text);
    p->n_words = 20 + (int)below(PLAIN_WORDS - 20);
    for (int w = 0; w < p->n_words; w++) {
        p->sizes[w] = 1 + (int)below(longest);
        for (int i = 0; i < p->sizes[w]; i++) {
            const size_t letter = below(letters);
            text[n++] = (char)('a' + letter);
            p->words[w][i] = 1 + 'a' - '!' + (int)letter; /* one control token is in front */
        }
        text[n++] = '\n';
    }
    text[n] = '\0';
    return text;
}

static void plain_begin(struct plain *p)
{
    memset(p, 0, sizeof *p);
    p->n = 257;
    p->first = 1;
    for (int c = '!'; c <= '~'; c++)
        snprintf(p->tokens[1 + c - '!'], sizeof p->tokens[0], "%c", c);
    for (int i = 1 + '~' - '!' + 1; i < p->n; i++)
        snprintf(p->tokens[i], sizeof p->tokens[0], "<%d>", i);
}

/* Catches: a count that is not brought up to date, a tie that is decided otherwise, a pair merged from the
 * right, a neighbour looked up beyond a word, a second token of the same bytes. */
START_TEST(like_the_plain_algorithm)
{
    static struct plain p;
    struct tfm_bpe_trainer *trainer = NULL;
    struct tfm_error err = {0};
    void *memory;
    size_t n;

    state = 88172645463325252ULL + 977 * (uint64_t)_i;
    plain_begin(&p);
    char *text = random_text(&p);
    const int wanted = 257 + 1 + (int)below(80);
    while (p.n < wanted && plain_step(&p))
        ;
    const struct tfm_bpe_options options = {.vocab = (size_t)p.n, .bos = "<|b|>", .eos = "<|b|>"};
    ck_assert_int_eq(tfm_bpe_trainer_create(&options, &trainer, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_bpe_trainer_add(trainer, text, strlen(text), &err), TFM_STATUS_OK);
    ck_assert_msg(tfm_bpe_trainer_run(trainer, &err) == TFM_STATUS_OK, "%s", err.text);
    struct tfm_gguf *gguf = to_gguf(trainer, &memory);
    struct tfm_text *merges = merges_of(gguf, &n);
    for (size_t i = 0; i < n && i < (size_t)p.n_merges; i++) {
        char want[160];
        snprintf(want, sizeof want, "%s %s", p.tokens[p.merges[i][0]], p.tokens[p.merges[i][1]]);
        ck_assert_msg(
            merges[i].size == strlen(want) && memcmp(merges[i].data, want, merges[i].size) == 0,
            "merge %zu is \"%.*s\", must be \"%s\"", i, (int)merges[i].size, merges[i].data, want);
    }
    /* after the last new token the plain form may have learnt nothing more */
    ck_assert_uint_eq(n, (size_t)p.n_merges);
    ck_assert_uint_eq(tfm_bpe_trainer_merges(trainer), n);
    free(merges);
    free(text);
    tfm_gguf_close(gguf);
    free(memory);
    tfm_bpe_trainer_destroy(trainer);
}
END_TEST

/* ---- against tokenizers ---- */

static json_t *read_golden(char **text, size_t *size)
{
    char path[1024];
    json_error_t why;
    const char *folder = getenv("TFM_TEST_GOLDEN");

    snprintf(path, sizeof path, "%s/bpe.json", folder ? folder : "tests/golden");
    json_t *golden = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    ck_assert_msg(golden != NULL, "%s:%d: %s", path, why.line, why.text);
    snprintf(path, sizeof path, "%s/long.txt", folder ? folder : "tests/golden");
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    *text = malloc(1 << 16);
    ck_assert_ptr_nonnull(*text);
    *size = fread(*text, 1, 1 << 16, file);
    fclose(file);
    return golden;
}

static struct tfm_bpe_trainer *train(const struct tfm_bpe_options *options, const char *text,
                                     size_t size)
{
    struct tfm_bpe_trainer *trainer = NULL;
    struct tfm_error err = {0};

    ck_assert_msg(tfm_bpe_trainer_create(options, &trainer, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_int_eq(tfm_bpe_trainer_add(trainer, text, size, &err), TFM_STATUS_OK);
    ck_assert_msg(tfm_bpe_trainer_run(trainer, &err) == TFM_STATUS_OK, "%s", err.text);
    return trainer;
}

/* Catches: other merges or other ids than the package that everybody uses. */
START_TEST(like_tokenizers)
{
    char *text;
    size_t size, n, index;
    json_t *golden = read_golden(&text, &size), *entry;
    const struct tfm_bpe_options options = {
        .vocab = (size_t)json_integer_value(json_object_get(golden, "vocab")),
        .bos = "<|bos|>",
        .eos = "<|eos|>",
    };
    struct tfm_bpe_trainer *trainer = train(&options, text, size);
    void *memory;
    struct tfm_gguf *gguf = to_gguf(trainer, &memory);
    struct tfm_text *merges = merges_of(gguf, &n);
    struct tfm_tokenizer *tokenizer = NULL;
    struct tfm_error err;

    ck_assert_uint_eq(n, json_array_size(json_object_get(golden, "merges")));
    json_array_foreach(json_object_get(golden, "merges"), index, entry)
    {
        ck_assert_uint_eq(merges[index].size, json_string_length(entry));
        ck_assert_mem_eq(merges[index].data, json_string_value(entry), merges[index].size);
    }
    ck_assert_msg(tfm_tokenizer_create(gguf, &tokenizer, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_uint_eq(tfm_tokenizer_vocab(tokenizer), options.vocab);
    ck_assert_int_eq(tfm_tokenizer_bos(tokenizer), 0);
    ck_assert_int_eq(tfm_tokenizer_eos(tokenizer), 1);
    ck_assert_int_eq(tfm_tokenizer_is_control(tokenizer, 1), 1);
    ck_assert_int_eq(tfm_tokenizer_is_control(tokenizer, 2), 0);
    ck_assert_int_eq(tfm_tokenizer_add_bos(tokenizer), 0);
    json_array_foreach(json_object_get(golden, "texts"), index, entry)
    {
        json_t *sample = json_object_get(entry, "text"), *want = json_object_get(entry, "ids");
        int32_t *ids;
        ck_assert_int_eq(tfm_tokenizer_encode(tokenizer, json_string_value(sample),
                                              json_string_length(sample), 0, &ids, &n, NULL),
                         TFM_STATUS_OK);
        ck_assert_uint_eq(n, json_array_size(want));
        for (size_t i = 0; i < n; i++)
            ck_assert_int_eq(ids[i], json_integer_value(json_array_get(want, i)));
        free(ids);
    }
    tfm_tokenizer_destroy(tokenizer);
    free(merges);
    tfm_gguf_close(gguf);
    free(memory);
    tfm_bpe_trainer_destroy(trainer);
    free(text);
    json_decref(golden);
}
END_TEST

enum { LONG = 1 << 20 };

static int stop_in_the_middle(void *context, size_t done, size_t size)
{
    size_t *last = context;

    ck_assert(done > *last && done <= size && size == LONG);
    *last = done;
    return done < LONG / 2;
}

/* Catches: a caller who asks for the end and is heard behind the last word, or gets half a text. */
static void stop_within(const struct tfm_tokenizer *tokenizer, struct tfm_dataset_writer *writer)
{
    static char text[LONG];
    struct tfm_error err = {0};
    size_t last = 0;

    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < LONG; i += 5)
        text[i] = ' ';
    ck_assert_int_eq(
        tfm_tokenizer_add_text(tokenizer, writer, text, LONG, stop_in_the_middle, &last, &err),
        TFM_STATUS_CANCELLED);
    ck_assert_msg(last >= LONG / 2 && last < LONG / 2 + LONG / 3, "%zu", last);
    ck_assert_ptr_nonnull(strstr(err.text, "stopped"));
}

/* A text as a token file, with what begins and ends it.
 * Catches: a text without its ends, a control token that a text brings in, two tokenizers with one checksum. */
START_TEST(token_files)
{
    static const char text[] = "ab ab<|e|>";
    const char *names[3][2] = {{"<|b|>", "<|e|>"}, {"<|e|>", "<|e|>"}, {NULL, NULL}};
    static const int32_t ends[3][2] = {{0, 1}, {-1, 0}, {-1, -1}};
    char path[] = "/tmp/tfm-tokens-XXXXXX";
    uint64_t checksums[3];
    struct tfm_error err = {0};

    close(mkstemp(path));
    for (int i = 0; i < 3; i++) {
        const struct tfm_bpe_options options = {
            .vocab = 260, .bos = names[i][0], .eos = names[i][1]};
        struct tfm_bpe_trainer *trainer = train(&options, "ab ab ab abab xyz xyz xyz", 25);
        void *memory;
        struct tfm_gguf *gguf = to_gguf(trainer, &memory);
        struct tfm_tokenizer *tokenizer = NULL;
        struct tfm_dataset_writer *writer = NULL;
        struct tfm_dataset *dataset = NULL;
        int32_t *ids, got[64];
        size_t n;

        ck_assert_int_eq(tfm_tokenizer_create(gguf, &tokenizer, &err), TFM_STATUS_OK);
        checksums[i] = tfm_tokenizer_checksum(tokenizer);
        ck_assert_int_eq(tfm_dataset_writer_create(path, 260, checksums[i], &writer, &err),
                         TFM_STATUS_OK);
        ck_assert_int_eq(
            tfm_tokenizer_add_text(tokenizer, writer, text, strlen(text), NULL, NULL, &err),
            TFM_STATUS_OK);
        ck_assert_int_eq(tfm_tokenizer_add_text(tokenizer, writer, "\xff", 1, NULL, NULL, &err),
                         TFM_STATUS_FORMAT);
        stop_within(tokenizer, writer); /* appends nothing */
        ck_assert_int_eq(tfm_dataset_writer_finish(writer, &err), TFM_STATUS_OK);
        tfm_dataset_writer_destroy(writer);
        ck_assert_int_eq(tfm_dataset_open(path, &dataset, &err), TFM_STATUS_OK);
        ck_assert_int_eq(tfm_dataset_expect(dataset, 260, checksums[i], &err), TFM_STATUS_OK);
        ck_assert_int_eq(tfm_tokenizer_encode(tokenizer, text, strlen(text), 0, &ids, &n, &err),
                         TFM_STATUS_OK);
        const size_t front = ends[i][0] >= 0, back = ends[i][1] >= 0;
        ck_assert_uint_eq(tfm_dataset_count(dataset), front + n + back);
        ck_assert_int_eq(tfm_dataset_read(dataset, 0, front + n + back, got, &err), TFM_STATUS_OK);
        ck_assert_mem_eq(got + front, ids, n * sizeof *ids);
        if (front)
            ck_assert_int_eq(got[0], ends[i][0]);
        if (back)
            ck_assert_int_eq(got[front + n], ends[i][1]);
        for (size_t k = 0; k < n; k++)
            ck_assert_int_eq(tfm_tokenizer_is_control(tokenizer, ids[k]), 0);
        free(ids);
        tfm_dataset_close(dataset);
        tfm_tokenizer_destroy(tokenizer);
        tfm_gguf_close(gguf);
        free(memory);
        tfm_bpe_trainer_destroy(trainer);
    }
    unlink(path);
    ck_assert(checksums[0] != checksums[1] && checksums[1] != checksums[2] &&
              checksums[0] != checksums[2]);
}
END_TEST

/* Catches: a result that depends on the order of the text or on how it came in. */
START_TEST(order_of_the_text)
{
    char *text;
    size_t size, n[2];
    void *memory[2];
    json_t *golden = read_golden(&text, &size);
    const struct tfm_bpe_options options = {.vocab = 400};
    struct tfm_bpe_trainer *trainer[2] = {train(&options, text, size), NULL};
    struct tfm_error err;

    ck_assert_int_eq(tfm_bpe_trainer_create(&options, &trainer[1], &err), TFM_STATUS_OK);
    for (size_t end = size, at = size; end > 0; end = at) { /* line by line, the last one first */
        for (at = end - 1; at > 0 && text[at - 1] != '\n'; at--)
            ;
        ck_assert_int_eq(tfm_bpe_trainer_add(trainer[1], text + at, end - at, &err), TFM_STATUS_OK);
    }
    ck_assert_int_eq(tfm_bpe_trainer_run(trainer[1], &err), TFM_STATUS_OK);
    ck_assert_uint_eq(tfm_bpe_trainer_text_bytes(trainer[1]), size);
    for (int i = 0; i < 2; i++) {
        struct tfm_gguf *gguf = to_gguf(trainer[i], &memory[i]);
        n[i] = tfm_gguf_size(gguf);
        tfm_gguf_close(gguf);
        tfm_bpe_trainer_destroy(trainer[i]);
    }
    ck_assert_uint_eq(n[0], n[1]);
    ck_assert_mem_eq(memory[0], memory[1], n[0]);
    free(memory[0]);
    free(memory[1]);
    free(text);
    json_decref(golden);
}
END_TEST

/* Catches: a token that is longer than the reader takes, and a long word that takes quadratic time. */
START_TEST(one_long_word)
{
    enum { SIZE = 3000000 };
    char *text = malloc(SIZE);
    const struct tfm_bpe_options options = {.vocab = 256 + 9};
    struct tfm_tokenizer *tokenizer = NULL;
    struct tfm_bpe_trainer *trainer = NULL;
    struct tfm_text piece;
    struct tfm_error err = {0};
    void *memory;

    ck_assert_ptr_nonnull(text);
    memset(text, 'a', SIZE);
    trainer = train(&options, text, SIZE);
    struct tfm_gguf *gguf = to_gguf(trainer, &memory);
    ck_assert_msg(tfm_tokenizer_create(gguf, &tokenizer, &err) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_int_eq(tfm_tokenizer_piece(tokenizer, 256 + 8, &piece, &err), TFM_STATUS_OK);
    ck_assert_uint_eq(piece.size, TFM_BPE_TOKEN_BYTES);
    tfm_tokenizer_destroy(tokenizer);
    tfm_gguf_close(gguf);
    free(memory);
    tfm_bpe_trainer_destroy(trainer);
    free(text);
}
END_TEST

/* ---- refusals ---- */

static const struct {
    struct tfm_bpe_options options;
    enum tfm_status status;
    const char *words[2];
} bad_options[] = {
    {{.vocab = 255}, TFM_STATUS_INVALID_ARGUMENT, {"255", "256"}},
    {{.vocab = 257, .bos = "<b>", .eos = "<e>"}, TFM_STATUS_INVALID_ARGUMENT, {"257", "258"}},
    {{.vocab = (1 << 24) + 1}, TFM_STATUS_INVALID_ARGUMENT, {"16777217", "16777216"}},
    {{.vocab = 300, .bos = ""}, TFM_STATUS_INVALID_ARGUMENT, {"bos"}},
    {{.vocab = 300, .eos = "\xff"}, TFM_STATUS_INVALID_ARGUMENT, {"eos", "UTF-8"}},
    {{.vocab = 300, .add_bos = 1}, TFM_STATUS_INVALID_ARGUMENT, {"bos"}},
    {{.vocab = 300, .pre = "gpt2"}, TFM_STATUS_UNSUPPORTED, {"gpt2", "smollm, gpt-2"}},
};

START_TEST(options_that_are_refused)
{
    struct tfm_bpe_trainer *trainer = NULL;
    struct tfm_error err = {0};

    ck_assert_int_eq(tfm_bpe_trainer_create(&bad_options[_i].options, &trainer, &err),
                     bad_options[_i].status);
    ck_assert_ptr_null(trainer);
    for (int k = 0; k < 2 && bad_options[_i].words[k]; k++)
        ck_assert_msg(strstr(err.text, bad_options[_i].words[k]) != NULL, "%s", err.text);
}
END_TEST

static const struct {
    const char *text;
    size_t vocab;
    enum tfm_status added, run;
    const char *word;
} bad_texts[] = {
    {"", 256, TFM_STATUS_OK, TFM_STATUS_INVALID_ARGUMENT, "no text"},
    {"abc\xe4", 256, TFM_STATUS_FORMAT, TFM_STATUS_OK, "offset 3"},
    /* ab, abc and abcd are all that occurs twice; one more token is the control token */
    {"abcd\nabcd", 260, TFM_STATUS_OK, TFM_STATUS_OUT_OF_RANGE, "only 260 of 261"},
    {"abcd\nabcd", 259, TFM_STATUS_OK, TFM_STATUS_OK, NULL},
    {"word\nword", 300, TFM_STATUS_OK, TFM_STATUS_INVALID_ARGUMENT, "'word'"},
};

START_TEST(texts_that_are_refused)
{
    const struct tfm_bpe_options options = {.vocab = bad_texts[_i].vocab + 1, .bos = "word"};
    struct tfm_bpe_trainer *trainer = NULL;
    struct tfm_gguf_writer *writer = NULL;
    struct tfm_error err = {0};
    const char *text = bad_texts[_i].text;

    ck_assert_int_eq(tfm_bpe_trainer_create(&options, &trainer, &err), TFM_STATUS_OK);
    ck_assert_int_eq(tfm_bpe_trainer_add(trainer, text, strlen(text), &err), bad_texts[_i].added);
    if (bad_texts[_i].added == TFM_STATUS_OK)
        ck_assert_int_eq(tfm_bpe_trainer_run(trainer, &err), bad_texts[_i].run);
    if (bad_texts[_i].word)
        ck_assert_msg(strstr(err.text, bad_texts[_i].word) != NULL, "%s", err.text);
    /* nothing half-made is given away, and a second run is none */
    if (err.status != TFM_STATUS_OK) {
        ck_assert_int_eq(tfm_gguf_writer_create(&writer, &err), TFM_STATUS_OK);
        ck_assert_int_eq(tfm_bpe_trainer_put(trainer, writer, &err), TFM_STATUS_INVALID_ARGUMENT);
        tfm_gguf_writer_destroy(writer);
    }
    if (bad_texts[_i].added == TFM_STATUS_OK)
        ck_assert_int_eq(tfm_bpe_trainer_run(trainer, &err), TFM_STATUS_INVALID_ARGUMENT);
    tfm_bpe_trainer_destroy(trainer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bpe_train");
    TCase *tcase = tcase_create("train");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, like_the_plain_algorithm, 0, 40);
    tcase_add_test(tcase, like_tokenizers);
    tcase_add_test(tcase, order_of_the_text);
    tcase_add_test(tcase, token_files);
    tcase_add_test(tcase, one_long_word);
    tcase_add_loop_test(tcase, options_that_are_refused, 0,
                        (int)(sizeof bad_options / sizeof *bad_options));
    tcase_add_loop_test(tcase, texts_that_are_refused, 0,
                        (int)(sizeof bad_texts / sizeof *bad_texts));
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
