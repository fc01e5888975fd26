/* SPDX-License-Identifier: MIT
 * Reads a configuration of layers: every key is known, of its type and in its range, or an error. */
#include "lib/tools/config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "lib/tools/file.h"
#include "lib/tools/message.h"

/* ---- kinds of values: each reader returns 0, or 1 after it wrote what is expected ---- */

struct key;
typedef char expectation[200];

struct word {
    const char *name;
    int value;
};

struct kind {
    int (*read)(const struct key *key, const json_t *value, void *to, expectation expected);
    const struct word *words;
    size_t n_words;
};

struct key {
    const struct kind *kind;
    const char *name;
    size_t offset; /* in struct tfm_nn_decoder */
    double least, most;
    const char *meaning;
};

static int read_count(const struct key *key, const json_t *value, void *to, expectation expected)
{
    const json_int_t n = json_integer_value(value);

    if (!json_is_integer(value) || (double)n < key->least || (double)n > key->most) {
        snprintf(expected, sizeof(expectation), "a whole number from %.0f to %.0f", key->least,
                 key->most);
        return 1;
    }
    *(int64_t *)to = n;
    return 0;
}

static int read_real(const struct key *key, const json_t *value, void *to, expectation expected)
{
    const double x = json_number_value(value);

    if (!json_is_number(value) || !isfinite(x) || x < key->least || x > key->most) {
        snprintf(expected, sizeof(expectation), "a number from %g to %g", key->least, key->most);
        return 1;
    }
    *(double *)to = x;
    return 0;
}

static int read_flag(const struct key *key, const json_t *value, void *to, expectation expected)
{
    (void)key;
    if (!json_is_boolean(value)) {
        snprintf(expected, sizeof(expectation), "true or false");
        return 1;
    }
    *(int *)to = json_is_true(value);
    return 0;
}

static int read_word(const struct key *key, const json_t *value, void *to, expectation expected)
{
    const char *text = json_string_value(value);
    size_t used = (size_t)snprintf(expected, sizeof(expectation), "one of");

    for (size_t i = 0; i < key->kind->n_words; i++) {
        const struct word *word = &key->kind->words[i];
        if (text && strcmp(text, word->name) == 0) {
            memcpy(to, &word->value, sizeof word->value); /* an enum of a few values is an int */
            return 0;
        }
        if (used < sizeof(expectation))
            used += (size_t)snprintf(expected + used, sizeof(expectation) - used, " \"%s\"",
                                     word->name);
    }
    return 1;
}

static const struct word norms[] = {
#define TFM_NN_NORM(id, NAME, name) {#name, id},
#include <tfm/nn_kinds.def>
};
static const struct word ffns[] = {
#define TFM_NN_FFN(id, NAME, name, gated) {#name, id},
#include <tfm/nn_kinds.def>
};
static const int ffn_gated[] = {
#define TFM_NN_FFN(id, NAME, name, gated) [id] = gated,
#include <tfm/nn_kinds.def>
};
static const struct word positions[] = {
#define TFM_NN_POSITION(id, NAME, name) {#name, id},
#include <tfm/nn_kinds.def>
};
static const struct word scalings[] = {
#define TFM_NN_ROPE_SCALING(id, NAME, name) {#name, id},
#include <tfm/nn_kinds.def>
};
static const struct word blocks[] = {
#define TFM_NN_BLOCK(id, NAME, name) {#name, id},
#include <tfm/nn_kinds.def>
};
static const struct word styles[] = {
    {"adjacent", TFM_ROPE_ADJACENT},
    {"halves", TFM_ROPE_HALVES},
};
static const struct word dtypes[] = {
#define TFM_DTYPE(id, NAME, name, block, bytes, class, minor) {name, id},
#include <tfm/dtypes.def>
#undef TFM_DTYPE
};

#define WORDS(list) read_word, list, sizeof(list) / sizeof *(list)
static const struct kind kind_COUNT = {read_count, NULL, 0};
static const struct kind kind_REAL = {read_real, NULL, 0};
static const struct kind kind_FLAG = {read_flag, NULL, 0};
static const struct kind kind_DTYPE = {WORDS(dtypes)};
static const struct kind kind_NORM = {WORDS(norms)};
static const struct kind kind_FFN = {WORDS(ffns)};
static const struct kind kind_POSITION = {WORDS(positions)};
static const struct kind kind_SCALING = {WORDS(scalings)};
static const struct kind kind_BLOCK = {WORDS(blocks)};
static const struct kind kind_STYLE = {WORDS(styles)};

static const struct key keys[] = {
#define TFM_CONFIG(KIND, name, field, least, most, meaning) \
    {&kind_##KIND, name, offsetof(struct tfm_nn_decoder, field), least, most, meaning},
#include "lib/tools/config.def"
#undef TFM_CONFIG
};
enum { KEYS = sizeof keys / sizeof *keys };

void tfm__config_help(void)
{
    for (size_t i = 0; i < KEYS; i++) {
        const struct key *key = &keys[i];
        expectation expected;
        key->kind->read(key, json_null(), NULL, expected); /* which no kind takes */
        printf("%-23s %s%s\n%-23s   %s\n", key->name, key->least >= 1 ? "(must be there) " : "",
               key->meaning, "", expected);
    }
}

/* ---- the object ---- */

static const struct key *find(const char *name)
{
    for (size_t i = 0; i < KEYS; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

static int read_keys(const char *path, json_t *root, struct tfm_nn_decoder *decoder)
{
    const char *name;
    json_t *value;

    json_object_foreach(root, name, value)
    {
        const struct key *key = find(name);
        expectation expected;
        if (!key)
            return tfm__failed("%s: there is no key \"%.60s\"", path, name);
        if (key->kind->read(key, value, (char *)decoder + key->offset, expected)) {
            char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
            const int code = tfm__failed("%s: \"%s\" is %.60s; it must be %s", path, name,
                                         text ? text : "?", expected);
            free(text);
            return code;
        }
    }
    for (size_t i = 0; i < KEYS; i++)
        if (keys[i].least >= 1 && !json_object_get(root, keys[i].name))
            return tfm__failed("%s: \"%s\" is missing", path, keys[i].name);
    return TFM__EXIT_OK;
}

/* What other keys imply. */
static int finish(const char *path, struct tfm_nn_decoder *c)
{
    if (!c->kv_heads)
        c->kv_heads = c->heads;
    if (!c->head_dim && c->width % c->heads)
        return tfm__failed("%s: \"width\" %lld is no multiple of \"heads\" %lld; give \"head_dim\"",
                           path, (long long)c->width, (long long)c->heads);
    if (!c->head_dim)
        c->head_dim = c->width / c->heads;
    if (!c->ffn_width)
        c->ffn_width = ffn_gated[c->ffn] ? tfm_nn_ffn_width(c->width, 0) : 4 * c->width;
    c->each.k = c->each.v = c->each.o = c->each.q;
    c->each.gate = c->each.up = c->each.down = c->each.q;
    if (!c->bidirectional) {
        c->slots = 1;
        c->cells = c->positions;
    }
    return TFM__EXIT_OK;
}

int tfm__config_read(const char *path, struct tfm_nn_decoder *decoder)
{
    json_error_t error;
    char *data;
    size_t size;

    if (tfm__file_read(path, &data, &size))
        return TFM__EXIT_FAILED;
    json_t *root = json_loadb(data, size, JSON_REJECT_DUPLICATES, &error);
    free(data);
    if (!root)
        return tfm__failed("%s: line %d, column %d: %s", path, error.line, error.column,
                           error.text);
    *decoder = (struct tfm_nn_decoder){0};
    int code = json_is_object(root) ? read_keys(path, root, decoder)
                                    : tfm__failed("%s: no JSON object", path);
    json_decref(root);
    return code == TFM__EXIT_OK ? finish(path, decoder) : code;
}
