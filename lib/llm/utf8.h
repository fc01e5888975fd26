/* SPDX-License-Identifier: MIT
 * UTF-8 as Unicode defines it (table 3-7): no overlong forms, no surrogates, nothing above
 * U+10FFFF. */
#ifndef TFM__LLM_UTF8_H
#define TFM__LLM_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Looks at the character that begins at text[0], size >= 1. Returns its length 1..4 if it is
 * complete; 0 if text[0] can never begin one; -1 if the bytes there are the beginning of one and
 * end too early. */
int tfm__utf8_scan(const unsigned char *text, size_t size);

/* Offset of the first byte that is not part of valid UTF-8; size if all is valid. */
size_t tfm__utf8_check(const unsigned char *text, size_t size);

/* Code point at text[0] of valid UTF-8; *length = its bytes. */
static inline uint32_t tfm__utf8_decode(const unsigned char *text, size_t *length)
{
    uint32_t c = text[0];
    if (c < 0x80) {
        *length = 1;
        return c;
    }
    if (c < 0xe0) {
        *length = 2;
        return (c & 0x1f) << 6 | (text[1] & 0x3fU);
    }
    if (c < 0xf0) {
        *length = 3;
        return (c & 0x0f) << 12 | (text[1] & 0x3fU) << 6 | (text[2] & 0x3fU);
    }
    *length = 4;
    return (c & 0x07) << 18 | (text[1] & 0x3fU) << 12 | (text[2] & 0x3fU) << 6 | (text[3] & 0x3fU);
}

#endif
