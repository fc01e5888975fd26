/* SPDX-License-Identifier: MIT
 * Bytes of the model as JSON strings, and JSON values on standard output. */
#ifndef TFM__TOOLS_JSON_TEXT_H
#define TFM__TOOLS_JSON_TEXT_H

#include <jansson.h>
#include <stddef.h>

/* The bytes as a JSON string value; what is no UTF-8 becomes U+FFFD. NULL when out of memory. */
json_t *tfm__json_string(const char *data, size_t size);
/* The same of a text that ends with 0. */
json_t *tfm__json_text(const char *text);
/* Prints the bytes as a JSON string, quotes included. Returns 0, or 1 when out of memory. */
int tfm__json_put_string(const char *data, size_t size);
/* Prints the value, indented, and a line end, and releases it. NULL (out of memory while it was
 * made) is an error. Returns an exit code. */
int tfm__json_put(json_t *value);

#endif
