/* SPDX-License-Identifier: MIT
 * Merging inside a word against the plainest form of the algorithm, on random vocabularies: for short
 * words, which are scanned, and for long ones, which take the heap. */
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/llm/toy_vocabulary.h"

static uint64_t state;

static size_t below(size_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % n);
}

static void swap_merges(struct toy_vocabulary *toy, size_t i, size_t j)
{
    struct tfm_text merge = toy->merges[i];
    int32_t left = toy->left[i], right = toy->right[i], result = toy->result[i];

    toy->merges[i] = toy->merges[j];
    toy->left[i] = toy->left[j];
    toy->right[i] = toy->right[j];
    toy->result[i] = toy->result[j];
    toy->merges[j] = merge;
    toy->left[j] = left;
    toy->right[j] = right;
    toy->result[j] = result;
}

static int has_merge(const struct toy_vocabulary *toy, int32_t left, int32_t right)
{
    for (size_t i = 0; i < toy->n_merges; i++)
        if (toy->left[i] == left && toy->right[i] == right)
            return 1;
    return 0;
}

/* Up to `n` merges over the letters a, b, c. shuffled: a merge may rank before those of its halves. */
static struct toy_vocabulary *random_vocabulary(size_t n, int shuffled)
{
    struct toy_vocabulary *toy = toy_create();

    for (char c = 'a'; c <= 'c'; c++)
        toy_token(toy, &c, 1, TOY_NORMAL);
    for (size_t i = 0; i < n; i++) {
        int32_t left = (int32_t)below(toy->n), right = (int32_t)below(toy->n);
        if (!has_merge(toy, left, right) && toy->bytes[left].size + toy->bytes[right].size <= 12)
            toy_merge(toy, left, right);
    }
    if (shuffled)
        for (size_t i = toy->n_merges; i > 1; i--)
            swap_merges(toy, i - 1, below(i));
    return toy;
}

/* Looks for the merge of lowest rank, leftmost first, applies it, and begins again. */
static size_t merge_plainly(const struct toy_vocabulary *toy, int32_t *ids, size_t n)
{
    for (;;) {
        size_t best = n, best_rank = toy->n_merges;
        for (size_t i = 0; i + 1 < n; i++)
            for (size_t rank = 0; rank < best_rank; rank++)
                if (toy->left[rank] == ids[i] && toy->right[rank] == ids[i + 1]) {
                    best = i;
                    best_rank = rank;
                }
        if (best == n)
            return n;
        ids[best] = toy->result[best_rank];
        memmove(ids + best + 1, ids + best + 2, (n - best - 2) * sizeof *ids);
        n--;
    }
}

/* Catches: another order of equal ranks, a stale pair merged, a pair missed after a merge, a step past
 * either end of a word. */
START_TEST(like_the_plain_algorithm)
{
    enum { LONGEST = 300, WORDS = 40 };
    struct toy_vocabulary *toy;
    struct tfm_tokenizer *t;

    state = 88172645463325252ULL + (uint64_t)_i;
    toy = random_vocabulary(3 + below(60), _i % 2);
    t = toy_tokenizer(toy, "smollm");
    for (size_t w = 0; w < WORDS; w++) {
        char word[LONGEST + 1];
        int32_t plain[LONGEST], *ids = NULL;
        size_t size = w < 4 ? w + 1 : w < 20 ? 1 + below(60) : 1 + below(LONGEST), n = 0, n_plain;
        size_t letters = 1 + below(3); /* few letters make many equal pairs */
        for (size_t i = 0; i < size; i++) {
            word[i] = (char)('a' + below(letters));
            plain[i] = word[i] - 'a';
        }
        word[size] = '\0';
        n_plain = merge_plainly(toy, plain, size);
        ck_assert_int_eq(tfm_tokenizer_encode(t, word, size, 0, &ids, &n, NULL), TFM_STATUS_OK);
        ck_assert_msg(n == n_plain && memcmp(ids, plain, n * sizeof *ids) == 0,
                      "vocabulary %d, word %s", _i, word);
        free(ids);
    }
    tfm_tokenizer_destroy(t);
    toy_free(toy);
}
END_TEST

enum { TEXT = 100000 };

/* Words of letters, those of many lengths; of 16 bytes, of which the first eight are the same; of NUL bytes
 * only. Each ends with a line. Returns the size. */
static size_t fill(char *text, int kind)
{
    size_t size = 0;

    while (size + 24 < TEXT) {
        size_t length = kind == 1 ? 16 : below(kind == 2 ? 16 : 22) + 1, letters = below(3) + 1;
        for (size_t i = 0; i < length; i++)
            text[size++] = kind == 2            ? '\0'
                           : kind == 1 && i < 8 ? 'a'
                           : kind == 1          ? (char)('a' + below(3))
                                                : (char)('a' + below(letters));
        text[size++] = '\n';
    }
    return size;
}

/* Catches: a word remembered wrongly: of another length, with other bytes behind, with too many tokens,
 * or one that never was. In a text this long words are remembered; each alone is not. */
START_TEST(words_that_come_again)
{
    struct toy_vocabulary *toy;
    struct tfm_tokenizer *t;
    char *text = malloc(TEXT);
    int32_t *ids = NULL;
    size_t n, size, at = 0;

    ck_assert_ptr_nonnull(text);
    state = 1234567;
    toy = random_vocabulary(30, 0);
    toy_token(toy, "\n", 1, TOY_NORMAL);
    toy_token(toy, "", 1, TOY_NORMAL);
    t = toy_tokenizer(toy, "smollm");
    size = fill(text, _i);
    ck_assert_int_eq(tfm_tokenizer_encode(t, text, size, 0, &ids, &n, NULL), TFM_STATUS_OK);
    for (size_t begin = 0, end; begin < size; begin = end) {
        int32_t *word;
        size_t n_word;
        end = begin + 1 + (size_t)((char *)memchr(text + begin, '\n', size - begin) - text - begin);
        if (tfm_tokenizer_encode(t, text + begin, end - begin, 0, &word, &n_word, NULL) !=
                TFM_STATUS_OK ||
            n_word > n - at || memcmp(ids + at, word, n_word * sizeof *word) != 0)
            ck_abort_msg("line at %zu", begin);
        at += n_word;
        free(word);
    }
    ck_assert_uint_eq(at, n);
    free(ids);
    free(text);
    tfm_tokenizer_destroy(t);
    toy_free(toy);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bpe");
    TCase *tcase = tcase_create("merges");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, like_the_plain_algorithm, 0, 40);
    tcase_add_loop_test(tcase, words_that_come_again, 0, 3);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
