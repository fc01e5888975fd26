/* SPDX-License-Identifier: MIT
 * Text from files in error messages. */
#include "lib/llm/text.h"

const char *tfm__text_quote(struct tfm_text text, struct tfm__quoted *buffer)
{
    static const char hex[] = "0123456789abcdef";
    /* room for one escape, the dots, the quote and the end */
    const size_t limit = sizeof buffer->text - 4 - 3 - 1 - 1;
    char *out = buffer->text;
    size_t n = 0, i = 0;

    out[n++] = '\'';
    for (; i < text.size && n <= limit; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c >= 0x20 && c < 0x7f) {
            out[n++] = (char)c;
        } else {
            out[n++] = '\\';
            out[n++] = 'x';
            out[n++] = hex[c >> 4];
            out[n++] = hex[c & 15];
        }
    }
    if (i < text.size)
        for (int dot = 0; dot < 3; dot++)
            out[n++] = '.';
    out[n++] = '\'';
    out[n] = '\0';
    return out;
}
