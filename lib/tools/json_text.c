/* SPDX-License-Identifier: MIT
 * Tokens may hold parts of characters; JSON may not. Each longest part that could begin a character
 * becomes one U+FFFD (Unicode 15, section 3.9, "substitution of maximal subparts"). */
#include "lib/tools/json_text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/core/checked.h"
#include "lib/tools/message.h"

/* Length of the character at p, or minus the length of the part that could have begun one. */
static int character(const unsigned char *p, size_t size)
{
    /* allowed second bytes by first byte (Unicode 15, table 3-7) */
    static const struct {
        unsigned char first, last, second_first, second_last;
        int length;
    } forms[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (p[0] < forms[i].first || p[0] > forms[i].last)
            continue;
        for (int n = 1; n < forms[i].length; n++) {
            unsigned char least = n == 1 ? forms[i].second_first : 0x80;
            unsigned char most = n == 1 ? forms[i].second_last : 0xbf;
            if ((size_t)n == size || p[n] < least || p[n] > most)
                return -n;
        }
        return forms[i].length;
    }
    return -1;
}

json_t *tfm__json_string(const char *data, size_t size)
{
    static const char replacement[] = "\xef\xbf\xbd";
    size_t room, n = 0;
    if (tfm__mul_size(size, 3, &room) || tfm__add_size(room, 1, &room))
        return NULL;
    char *text = malloc(room);
    if (!text)
        return NULL;
    for (size_t at = 0; at < size;) {
        int length = character((const unsigned char *)data + at, size - at);
        size_t used = (size_t)(length < 0 ? -length : length);
        memcpy(text + n, length < 0 ? replacement : data + at, length < 0 ? 3 : used);
        n += length < 0 ? 3 : used;
        at += used;
    }
    json_t *value = json_stringn(text, n);
    free(text);
    return value;
}

json_t *tfm__json_text(const char *text)
{
    return tfm__json_string(text, strlen(text));
}

int tfm__json_put_string(const char *data, size_t size)
{
    json_t *value = tfm__json_string(data, size);
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    json_decref(value);
    if (!text)
        return 1;
    fputs(text, stdout);
    free(text);
    return 0;
}

int tfm__json_put(json_t *value)
{
    if (!value)
        return tfm__failed("out of memory");
    int failed = json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
    json_decref(value);
    putchar('\n');
    /* what could not be written is told when standard output is closed */
    return failed && !ferror(stdout) ? tfm__failed("out of memory") : TFM__EXIT_OK;
}
