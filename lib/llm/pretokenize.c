/* SPDX-License-Identifier: MIT
 * The pre-tokenizers as hand-written scanners. Each does what its regular expression says (first
 * alternative that matches wins); tests compare them with PCRE2. */
#include <string.h>

#include <utf8proc.h>

#include "lib/llm/pretokenize.h"
#include "lib/llm/utf8.h"

enum class {
    LETTER, /* \p{L} */
    NUMBER, /* \p{N} */
    SPACE,  /* \s: White_Space */
    OTHER,
    END, /* behind the text */
};

static enum class classify(uint32_t c) {
    if (c < 0x80){if ((c | 0x20) - 'a' < 26) return LETTER; if (c - '0' < 10) return NUMBER;
                  return c == ' ' || c - '\t' < 5 ? SPACE : OTHER;}
switch (utf8proc_category((utf8proc_int32_t)c))
{
case UTF8PROC_CATEGORY_LU:
case UTF8PROC_CATEGORY_LL:
case UTF8PROC_CATEGORY_LT:
case UTF8PROC_CATEGORY_LM:
case UTF8PROC_CATEGORY_LO:
    return LETTER;
case UTF8PROC_CATEGORY_ND:
case UTF8PROC_CATEGORY_NL:
case UTF8PROC_CATEGORY_NO:
    return NUMBER;
case UTF8PROC_CATEGORY_ZS:
case UTF8PROC_CATEGORY_ZL:
case UTF8PROC_CATEGORY_ZP:
    return SPACE;
default:
    return c == 0x85 ? SPACE : OTHER; /* NEXT LINE is a control by category */
}
}

/* Class of the character at text[at]; *end = where it ends. */
static enum class look(const unsigned char *text, size_t size, size_t at, size_t *end) {
    size_t length; uint32_t c;

    if (at >= size){ *end = size; return END;}
c = tfm__utf8_decode(text + at, &length);
*end = at + length;
return classify(c);
}

/* End of the run of `wanted` that begins at `at`, at most `limit` characters. */
static size_t run(const unsigned char *text, size_t size, size_t at, enum class wanted,
                  size_t limit)
{
    size_t end;

    for (size_t n = 0; n < limit && look(text, size, at, &end) == wanted; n++)
        at = end;
    return at;
}

/* End of 's 't 're 've 'm 'll 'd at text[at], which is an apostrophe; `at` if it is none of these.
 */
static size_t contraction(const unsigned char *text, size_t size, size_t at, int any_case)
{
    static const char endings[][3] = {"s", "t", "re", "ve", "m", "ll", "d"};

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(endings[i]), j = 0;
        if (n > size - at - 1)
            continue;
        for (; j < n; j++) {
            unsigned char c = text[at + 1 + j];
            if (any_case && c >= 'A' && c <= 'Z')
                c |= 0x20;
            if (c != (unsigned char)endings[i][j])
                break;
        }
        if (j == n)
            return at + 1 + n;
    }
    /* U+017F, the long s, is an s where case does not count */
    if (any_case && size - at >= 3 && text[at + 1] == 0xc5 && text[at + 2] == 0xbf)
        return at + 3;
    return at;
}

/* \s+(?!\S)|\s+ : the run, without its last character if a word follows and something is left.
 * `edge` = the text ends at a character of class NUMBER, too. */
static size_t spaces(const unsigned char *text, size_t size, size_t at, int edge)
{
    size_t end = at, last = at, next;
    enum class class;

    while ((class = look(text, size, end, &next)) == SPACE) {
        last = end;
        end = next;
    }
    if (class == END || (edge && class == NUMBER) || last == at)
        return end;
    return last;
}

/* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * digits: every \p{N} is a word of its own and the text ends in front of it. That is not the same
 * as an alternative more: the look-ahead must not see the digit (" 1": the blank is a word). */
static size_t next_gpt2(const unsigned char *text, size_t size, size_t at, int digits)
{
    size_t end, word = at;
    enum class class;

    if (text[at] == '\'') {
        end = contraction(text, size, at, 0);
        if (end > at)
            return end;
    }
    if (text[at] == ' ')
        word = at + 1;
    class = look(text, size, word, &end);
    if (class == NUMBER && digits)
        return word == at ? end : word;
    if (class == LETTER || class == NUMBER || class == OTHER)
        return run(text, size, end, class, SIZE_MAX);
    return spaces(text, size, at, digits);
}

static size_t next_plain(const unsigned char *text, size_t size, size_t at)
{
    return next_gpt2(text, size, at, 0);
}

static size_t next_digits(const unsigned char *text, size_t size, size_t at)
{
    return next_gpt2(text, size, at, 1);
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
 * |\s*[\r\n]+|\s+(?!\S)|\s+ */
static size_t next_llama3(const unsigned char *text, size_t size, size_t at)
{
    size_t end, next, word = at, line = at;
    enum class class = look(text, size, at, &end);

    if (text[at] == '\'') {
        next = contraction(text, size, at, 1);
        if (next > at)
            return next;
    }
    if (class == LETTER)
        return run(text, size, end, LETTER, SIZE_MAX);
    if (class == NUMBER)
        return run(text, size, at, NUMBER, 3);
    if (text[at] != '\r' && text[at] != '\n' && look(text, size, end, &next) == LETTER)
        return run(text, size, next, LETTER, SIZE_MAX);
    if (text[at] == ' ')
        word = at + 1;
    if (look(text, size, word, &next) == OTHER) {
        end = run(text, size, next, OTHER, SIZE_MAX);
        while (end < size && (text[end] == '\r' || text[end] == '\n'))
            end++;
        return end;
    }
    /* \s*[\r\n]+ ends behind the last line break of the run */
    for (end = at; look(text, size, end, &next) == SPACE; end = next)
        if (text[end] == '\r' || text[end] == '\n')
            line = next;
    return line > at ? line : spaces(text, size, at, 0);
}

static const struct tfm__splitter splitters[] = {
    {"smollm", next_digits, 0, 0},
    {"gpt-2", next_plain, 0, 0},
    {"llama-bpe", next_llama3, 1, 1},
};

const struct tfm__splitter *tfm__splitter_at(size_t index)
{
    return index < sizeof splitters / sizeof *splitters ? &splitters[index] : NULL;
}

const struct tfm__splitter *tfm__splitter_find(struct tfm_text name)
{
    for (size_t i = 0; i < sizeof splitters / sizeof *splitters; i++)
        if (strlen(splitters[i].name) == name.size &&
            memcmp(splitters[i].name, name.data, name.size) == 0)
            return &splitters[i];
    return NULL;
}
