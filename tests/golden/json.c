/* SPDX-License-Identifier: MIT
 * Recursive-descent JSON reader for test data. */
#include "tests/golden/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cursor {
    const char *text;
    size_t size, at;
};

static int peek(const struct cursor *c)
{
    return c->at < c->size ? (unsigned char)c->text[c->at] : -1;
}

static void blanks(struct cursor *c)
{
    while (peek(c) == ' ' || peek(c) == '\t' || peek(c) == '\n' || peek(c) == '\r')
        c->at++;
}

static int accept(struct cursor *c, int byte)
{
    blanks(c);
    if (peek(c) != byte)
        return 0;
    c->at++;
    return 1;
}

static int accept_word(struct cursor *c, const char *word)
{
    size_t n = strlen(word);
    if (c->size - c->at < n || memcmp(c->text + c->at, word, n) != 0)
        return 0;
    c->at += n;
    return 1;
}

static int hex4(struct cursor *c, unsigned *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++, c->at++) {
        const char *digits = "0123456789abcdef", *digit;
        int byte = peek(c);
        if (byte >= 'A' && byte <= 'F')
            byte += 'a' - 'A';
        if (byte <= 0 || !(digit = strchr(digits, byte)))
            return 0;
        *code = *code * 16 + (unsigned)(digit - digits);
    }
    return 1;
}

/* Appends a code point; at most four bytes. */
static char *put_utf8(char *out, unsigned code)
{
    if (code < 0x80) {
        *out++ = (char)code;
        return out;
    }
    int extra = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    *out++ = (char)(lead[extra] | code >> 6 * extra);
    while (extra--)
        *out++ = (char)(0x80 | (code >> 6 * extra & 0x3f));
    return out;
}

static int escape(struct cursor *c, char **out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int byte = peek(c);
    c->at++;
    if (byte == 'u') {
        unsigned code, low;
        if (!hex4(c, &code))
            return 0;
        if (code >= 0xd800 && code < 0xdc00) {
            if (!accept_word(c, "\\u") || !hex4(c, &low) || low < 0xdc00 || low > 0xdfff)
                return 0;
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        }
        *out = put_utf8(*out, code);
        return 1;
    }
    const char *found = byte > 0 ? strchr(from, byte) : NULL;
    if (!found)
        return 0;
    *(*out)++ = to[found - from];
    return 1;
}

/* The text of a string, malloc'ed; NULL when there is none here. */
static char *string(struct cursor *c)
{
    if (!accept(c, '"'))
        return NULL;
    char *text = malloc(c->size - c->at + 1), *out = text; /* no escape grows */
    while (text) {
        int byte = peek(c);
        if (byte < 0x20)
            break;
        c->at++;
        if (byte == '"') {
            *out = '\0';
            return text;
        }
        if (byte != '\\')
            *out++ = (char)byte;
        else if (!escape(c, &out))
            break;
    }
    free(text);
    return NULL;
}

static int number(struct cursor *c, double *value)
{
    char digits[64], *end;
    size_t n = 0;
    while (n < sizeof digits - 1 && c->at + n < c->size &&
           strchr("+-.0123456789eE", c->text[c->at + n]) && c->text[c->at + n])
        n++;
    memcpy(digits, c->text + c->at, n);
    digits[n] = '\0';
    *value = strtod(digits, &end);
    c->at += n;
    return n > 0 && *end == '\0';
}

static int value(struct cursor *c, struct json *json);

/* The items of an array or object after its bracket. */
static int items(struct cursor *c, struct json *json, int close)
{
    if (accept(c, close))
        return 1;
    do {
        struct json item = {0};
        if (close == '}' && (!(item.key = string(c)) || !accept(c, ':'))) {
            free(item.key);
            return 0;
        }
        if ((json->n & (json->n - 1)) == 0) { /* room for a power of two */
            struct json *grown =
                realloc(json->items, (json->n ? 2 * json->n : 1) * sizeof *json->items);
            if (!grown) {
                free(item.key);
                return 0;
            }
            json->items = grown;
        }
        json->items[json->n++] = item;
        if (!value(c, &json->items[json->n - 1]))
            return 0;
    } while (accept(c, ','));
    return accept(c, close);
}

static int value(struct cursor *c, struct json *json)
{
    blanks(c);
    switch (peek(c)) {
    case '{':
        json->kind = JSON_OBJECT;
        c->at++;
        return items(c, json, '}');
    case '[':
        json->kind = JSON_ARRAY;
        c->at++;
        return items(c, json, ']');
    case '"':
        json->kind = JSON_STRING;
        return (json->text = string(c)) != NULL;
    case 't':
        json->kind = JSON_TRUE;
        return accept_word(c, "true");
    case 'f':
        json->kind = JSON_FALSE;
        return accept_word(c, "false");
    case 'n':
        json->kind = JSON_NULL;
        return accept_word(c, "null");
    default:
        json->kind = JSON_NUMBER;
        return number(c, &json->number);
    }
}

static void clear(struct json *json)
{
    for (size_t i = 0; i < json->n; i++)
        clear(&json->items[i]);
    free(json->items);
    free(json->text);
    free(json->key);
}

void json_free(struct json *json)
{
    if (json)
        clear(json);
    free(json);
}

struct json *json_parse(const char *text, size_t size, size_t *at)
{
    struct cursor c = {.text = text, .size = size};
    struct json *json = calloc(1, sizeof *json);
    int whole = json && value(&c, json);
    blanks(&c);
    if (at)
        *at = c.at;
    if (whole && c.at == size)
        return json;
    json_free(json);
    return NULL;
}

struct json *json_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return NULL;
    }
    struct json *json = NULL;
    char *text = NULL;
    size_t n = 0, at = 0;
    for (size_t room = 1u << 16;; room *= 2) {
        char *grown = realloc(text, room);
        if (!grown)
            goto done;
        text = grown;
        n += fread(text + n, 1, room - n, file);
        if (n < room)
            break;
    }
    json = json_parse(text, n, &at);
    if (!json)
        fprintf(stderr, "%s: no JSON at byte %zu\n", path, at);
done:
    free(text);
    fclose(file);
    return json;
}

const struct json *json_get(const struct json *object, const char *key)
{
    for (size_t i = 0; object && object->kind == JSON_OBJECT && i < object->n; i++)
        if (!strcmp(object->items[i].key, key))
            return &object->items[i];
    return NULL;
}
