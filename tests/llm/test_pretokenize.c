/* SPDX-License-Identifier: MIT
 * The hand-written splitters against the regular expressions that they stand for, run by PCRE2. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <utf8proc.h>

#include <check.h>

#include "lib/llm/pretokenize.h"

/* White_Space. PCRE2's own \s takes U+180E in, too, which has not been white since Unicode 6.3. */
#define SPACE_SET "\\t-\\r\\x{85}\\p{Z}"
#define GPT2                                                                                  \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" SPACE_SET "\\p{L}\\p{N}]+|[" SPACE_SET \
    "]+(?![^" SPACE_SET "])|[" SPACE_SET "]+"

static const struct {
    const char *name;
    const char *first; /* cut by this before the pattern; NULL = do not */
    const char *pattern;
} rows[] = {
    {"gpt-2", NULL, GPT2},
    {"smollm", "\\p{N}|\\P{N}+", GPT2},
    {"llama-bpe", NULL,
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^" SPACE_SET
     "\\p{L}\\p{N}]+[\\r\\n]*|[" SPACE_SET "]*[\\r\\n]+|[" SPACE_SET "]+(?![^" SPACE_SET
     "])|[" SPACE_SET "]+"},
};

static pcre2_code *compile(const char *pattern)
{
    int error;
    PCRE2_SIZE at;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_UCP, &error, &at, NULL);
    ck_assert_msg(code != NULL, "PCRE2 error %d at %zu of %s", error, at, pattern);
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    return code;
}

/* Ends of the matches that follow each other in text[0, size), as whole subject, moved by `base`. */
static size_t find_all(const pcre2_code *code, pcre2_match_data *match, const unsigned char *text,
                       size_t size, size_t base, size_t *ends, size_t n)
{
    for (size_t at = 0; at < size;) {
        int found = pcre2_match(code, text, size, at, PCRE2_NO_UTF_CHECK, match, NULL);
        const PCRE2_SIZE *place = pcre2_get_ovector_pointer(match);
        ck_assert_msg(found > 0 && place[0] == at && place[1] > at, "no match at %zu", at);
        at = place[1];
        ends[n++] = base + at;
    }
    return n;
}

/* What the random strings are made of: everything that a rule or a class depends on. */
static const char *const pool[] = {
    " ",
    " ",
    " ",
    "  ",
    "\n",
    "\r",
    "\r\n",
    "\t",
    "\v",
    "\f",
    "'",
    "'",
    "'s",
    "'S",
    "'t",
    "'re",
    "'Re",
    "'ve",
    "'m",
    "'ll",
    "'lL",
    "'d",
    "'\xc5\xbf" /* long s */,
    "s",
    "t",
    "r",
    "e",
    "v",
    "l",
    "a",
    "Z",
    "S",
    "0",
    "1",
    "9",
    "42",
    "2024",
    "!",
    "-",
    "_",
    "(",
    "<|",
    "\xc2\xa0" /* no-break
    blank */
    ,
    "\xc2\x85" /* next line */,
    "\xe2\x80\x83" /* em blank */,
    "\xe3\x80\x80" /*
    ideographic blank */
    ,
    "\xe2\x80\xa8" /* line separator */,
    "\xe1\xa0\x8e" /* no longer white */,
    "\xe2\x80\x8b" /* zero width, not white */,
    "\xef\xbb\xbf" /* byte order mark */,
    "\xc3\xa9",
    "\xce\xa9",
    "\xe6\x97\xa5",
    "\xed\x95\x9c",
    "e\xcc\x81" /* combining accent */,
    "\xd9\xa3" /* Arabic-Indic 3 */,
    "\xc2\xb2" /* superscript 2 */,
    "\xe2\x85\xab" /* Roman XII */,
    "\xf0\x9f\x98\x80",
    "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7",
    "\xf0\x9d\x9f\x99" /*
    double-struck 1 */
    ,
    "\xf0\xa0\x80\x80" /* a letter above U+FFFF */,
    "\xe2\x84\xaa" /* Kelvin */,
    "\x1c",
    "\x1f",
    "\x7f",
    "\xee\x80\x80" /* private use */,
    "\xc2\xad" /* soft hyphen */,
    "\xca\xb0" /* modifier letter */,
    "\xc7\x85" /* title case */,
};
enum { N_POOL = sizeof pool / sizeof *pool };

static uint64_t state;

static size_t below(size_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % n);
}

/* Catches: an alternative tried in the wrong order, a look-ahead that sees a digit or the next piece, a
 * character of the wrong class, a blank taken along or left behind. */
START_TEST(like_the_expressions)
{
    enum { STRINGS = 20000, PIECES = 24, MAX = 512 };
    const struct tfm__splitter *splitter =
        tfm__splitter_find((struct tfm_text){rows[_i].name, strlen(rows[_i].name)});
    pcre2_code *first = rows[_i].first ? compile(rows[_i].first) : NULL;
    pcre2_code *code = compile(rows[_i].pattern);
    pcre2_match_data *match = pcre2_match_data_create(8, NULL);

    ck_assert_ptr_nonnull(splitter);
    state = 0x9e3779b97f4a7c15ULL;
    for (int s = 0; s < STRINGS; s++) {
        unsigned char text[MAX];
        size_t wanted[MAX] = {0}, pieces[MAX] = {0};
        size_t size = 0, n = 0, n_pieces = 0, at = 0, i = 0;
        size_t from = below(N_POOL),
               some = below(3) ? N_POOL : 1 + below(6); /* few kinds, or all */
        for (size_t p = 1 + below(PIECES); p > 0; p--) {
            const char *piece = pool[(from + below(some)) % N_POOL];
            memcpy(text + size, piece, strlen(piece));
            size += strlen(piece);
        }
        if (first)
            n_pieces = find_all(first, match, text, size, 0, pieces, 0);
        else
            pieces[n_pieces++] = size;
        for (size_t p = 0, begin = 0; p < n_pieces; begin = pieces[p++])
            n = find_all(code, match, text + begin, pieces[p] - begin, begin, wanted, n);
        while (at < size && i < n && splitter->next(text, size, at) == wanted[i])
            at = wanted[i++];
        ck_assert_msg(at == size && i == n, "%s: word %zu of '%.*s' ends at %zu, not %zu",
                      rows[_i].name, i, (int)size, text, splitter->next(text, size, at), wanted[i]);
    }
    pcre2_match_data_free(match);
    pcre2_code_free(code);
    pcre2_code_free(first);
}
END_TEST

/* Whether the splitter takes a and b for one word. */
static int joined(const struct tfm__splitter *splitter, const char *a, const unsigned char *b,
                  size_t size)
{
    unsigned char text[16];
    size_t n = strlen(a);

    memcpy(text, a, n);
    memcpy(text + n, b, size);
    return splitter->next(text, n + size, 0) == n + size;
}

/* Catches: any character of another class than PCRE2 gives it. Where one of the two libraries has a newer
 * Unicode, what the other one calls unassigned is left out. */
START_TEST(class_of_every_character)
{
    const struct tfm__splitter *splitter = tfm__splitter_find((struct tfm_text){"gpt-2", 5});
    pcre2_code *code = compile("(\\p{L})|(\\p{N})|([" SPACE_SET "])|(\\p{Cn})|(.|\\n)");
    pcre2_match_data *match = pcre2_match_data_create(8, NULL);
    size_t unassigned = 0, compared = 0;

    for (utf8proc_int32_t c = 0; c < 0x110000; c++) {
        utf8proc_uint8_t text[4];
        size_t size, joins, wanted;
        int group = 0;
        const PCRE2_SIZE *place;
        if (c >= 0xd800 && c < 0xe000)
            continue;
        size = (size_t)utf8proc_encode_char(c, text);
        if (pcre2_match(code, text, size, 0, PCRE2_NO_UTF_CHECK, match, NULL) > 0) {
            place = pcre2_get_ovector_pointer(match);
            for (group = 1; place[2 * group] == PCRE2_UNSET;)
                group++;
        }
        if (group == 4 || utf8proc_category(c) == UTF8PROC_CATEGORY_CN) {
            unassigned++;
            continue;
        }
        compared++;
        joins = (size_t)joined(splitter, "a", text, size) |
                (size_t)joined(splitter, "0", text, size) << 1 |
                (size_t)joined(splitter, "\t", text, size) << 2 |
                (size_t)joined(splitter, "!", text, size) << 3;
        wanted = group == 5 ? 8 : group > 0 ? (size_t)1 << (group - 1) : 0;
        if (joins != wanted)
            ck_abort_msg("U+%04X joins %zx, wanted %zx", (unsigned)c, joins, wanted);
    }
    ck_assert_uint_gt(compared, 280000);
    ck_assert_uint_gt(unassigned, 0);
    pcre2_match_data_free(match);
    pcre2_code_free(code);
}
END_TEST

/* Catches: an oracle that would agree with anything: known answers, one for each splitter. */
START_TEST(known_words)
{
    static const struct {
        const char *splitter, *text;
        size_t ends[8];
    } known[] = {
        {"smollm", "a  12 b", {1, 3, 4, 5, 7}},    {"gpt-2", "a  12 b", {1, 2, 5, 7}},
        {"llama-bpe", "a  1234", {1, 2, 3, 6, 7}}, {"smollm", "it's\n\nx", {2, 4, 5, 6, 7}},
        {"llama-bpe", "it's\n\nx", {2, 4, 6, 7}},
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        const struct tfm__splitter *splitter =
            tfm__splitter_find((struct tfm_text){known[k].splitter, strlen(known[k].splitter)});
        size_t at = 0, i = 0, size = strlen(known[k].text);
        for (; at < size; i++) {
            at = splitter->next((const unsigned char *)known[k].text, size, at);
            ck_assert_msg(at == known[k].ends[i], "%s '%s': word %zu ends at %zu",
                          known[k].splitter, known[k].text, i, at);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pretokenize");
    TCase *tcase = tcase_create("splitters");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, known_words);
    tcase_add_loop_test(tcase, like_the_expressions, 0, (int)(sizeof rows / sizeof *rows));
    tcase_add_test(tcase, class_of_every_character);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
