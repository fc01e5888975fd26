/* SPDX-License-Identifier: MIT
 * Text from files in error messages: shortened, and without control characters, so that a hostile
 * file cannot write to the terminal. */
#ifndef TFM__LLM_TEXT_H
#define TFM__LLM_TEXT_H

#include <tfm/gguf.h>

struct tfm__quoted {
    char text[96];
};

/* 'text' in single quotes with \xNN for what is not printable ASCII, "..." where it was cut.
 * Returns buffer->text. */
const char *tfm__text_quote(struct tfm_text text, struct tfm__quoted *buffer);

#endif
