/* SPDX-License-Identifier: MIT
 * A small JSON reader for test data: the whole text becomes a tree. Not for hostile input. */
#ifndef TFM_TEST_JSON_H
#define TFM_TEST_JSON_H

#include <stddef.h>

enum json_kind {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
};

struct json {
    enum json_kind kind;
    double number;
    char *key;          /* of a member of an object, else NULL */
    char *text;         /* STRING: its bytes in UTF-8, NUL-terminated */
    struct json *items; /* ARRAY, OBJECT */
    size_t n;
};

/* NULL when it is not JSON from the first to the last byte; *at then tells where reading stopped.
 */
struct json *json_parse(const char *text, size_t size, size_t *at);
/* Reads a file; says on stderr what is wrong with it and returns NULL. */
struct json *json_read(const char *path);
void json_free(struct json *json); /* NULL is fine */

/* Member of an object, NULL when there is none. */
const struct json *json_get(const struct json *object, const char *key);

#endif
