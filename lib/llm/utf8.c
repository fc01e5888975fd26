/* SPDX-License-Identifier: MIT
 * Validity of UTF-8, also of a piece of it. */
#include <string.h>

#include "lib/llm/utf8.h"

int tfm__utf8_scan(const unsigned char *text, size_t size)
{
    unsigned char c = text[0], low = 0x80, high = 0xbf;
    size_t length;

    if (c < 0x80)
        return 1;
    if (c < 0xc2 || c > 0xf4)
        return 0;
    length = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    /* the second byte is where overlong forms, surrogates and too large values show */
    if (c == 0xe0)
        low = 0xa0;
    else if (c == 0xed)
        high = 0x9f;
    else if (c == 0xf0)
        low = 0x90;
    else if (c == 0xf4)
        high = 0x8f;
    for (size_t i = 1; i < length; i++) {
        if (i == size)
            return -1;
        if (text[i] < low || text[i] > high)
            return 0;
        low = 0x80;
        high = 0xbf;
    }
    return (int)length;
}

size_t tfm__utf8_check(const unsigned char *text, size_t size)
{
    size_t at = 0;

    while (at < size) {
        uint64_t eight;
        int length;
        if (size - at >= sizeof eight) {
            memcpy(&eight, text + at, sizeof eight);
            if ((eight & UINT64_C(0x8080808080808080)) == 0) {
                at += sizeof eight;
                continue;
            }
        }
        length = tfm__utf8_scan(text + at, size - at);
        if (length <= 0)
            return at;
        at += (size_t)length;
    }
    return size;
}
