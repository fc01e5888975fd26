/* SPDX-License-Identifier: MIT
 * Reads a configuration of layers and of their training: every key is known, of its type and in its range, or an
 * error. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/config.h>

#include "lib/llm/decoder_json.h"

/* ---- kinds of values: each reader returns 0, or 1 after it wrote what is expected ---- */

struct key;
typedef char expectation[sizeof((struct tfm_config_key *)0)->expected];

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
    size_t offset; /* in struct tfm_nn_decoder or tfm_trainer_settings */
    double fallback, least, most;
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
static const struct word computes[] = {
    {"f32", TFM_DTYPE_F32},
    {"bf16", TFM_DTYPE_BF16},
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
static const struct kind kind_COMPUTE = {WORDS(computes)};

static const struct key decoder_keys[] = {
#define TFM_CONFIG(KIND, name, field, least, most, meaning) \
    {&kind_##KIND, name, offsetof(struct tfm_nn_decoder, field), 0, least, most, meaning},
#include <tfm/decoder_keys.def>
#undef TFM_CONFIG
};
static const struct key train_keys[] = {
#define TFM_TRAIN_SETTING(KIND, field, fallback, least, most, meaning)                    \
    {&kind_##KIND, #field, offsetof(struct tfm_trainer_settings, field), fallback, least, \
     most,         meaning},
#include <tfm/train_settings.def>
#undef TFM_TRAIN_SETTING
};

static const struct table {
    const struct key *keys;
    size_t n;
    const char *where; /* in front of a key in messages */
} decoder_table = {decoder_keys, sizeof decoder_keys / sizeof *decoder_keys, ""},
  train_table = {train_keys, sizeof train_keys / sizeof *train_keys, "\"train\": "};

static int needed(const struct key *key)
{
    return key->fallback < key->least;
}

enum tfm_status tfm_config_key(int training, size_t index, struct tfm_config_key *key)
{
    const struct table *table = training ? &train_table : &decoder_table;

    if (index >= table->n)
        return TFM_STATUS_NOT_FOUND;
    const struct key *from = &table->keys[index];
    *key = (struct tfm_config_key){.name = from->name,
                                   .meaning = from->meaning,
                                   .needed = needed(from),
                                   .fallback = from->fallback};
    from->kind->read(from, json_null(), NULL, key->expected); /* which no kind takes */
    return TFM_STATUS_OK;
}

/* ---- the objects ---- */

static const struct key *find(const struct table *table, const char *name)
{
    for (size_t i = 0; i < table->n; i++)
        if (strcmp(table->keys[i].name, name) == 0)
            return &table->keys[i];
    return NULL;
}

static enum tfm_status read_key(const char *path, const struct table *table, const char *name,
                                const json_t *value, void *to, struct tfm_error *err)
{
    const struct key *key = find(table, name);
    expectation expected;

    if (!key)
        return tfm_error_set(err, TFM_STATUS_FORMAT, "%s: %sthere is no key \"%.60s\"", path,
                             table->where, name);
    if (key->kind->read(key, value, (char *)to + key->offset, expected)) {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        const enum tfm_status status =
            tfm_error_set(err, TFM_STATUS_FORMAT, "%s: %s\"%s\" is %.60s; it must be %s", path,
                          table->where, name, text ? text : "?", expected);
        free(text);
        return status;
    }
    return TFM_STATUS_OK;
}

/* `skipped`: a key that somebody else reads; `optional`: one that may be missing; NULL = none. */
static enum tfm_status read_keys(const char *path, const struct table *table, json_t *object,
                                 void *to, const char *skipped, const char *optional,
                                 struct tfm_error *err)
{
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value)
    {
        if (skipped && strcmp(name, skipped) == 0)
            continue;
        const enum tfm_status status = read_key(path, table, name, value, to, err);
        if (status != TFM_STATUS_OK)
            return status;
    }
    for (size_t i = 0; i < table->n; i++) {
        const struct key *key = &table->keys[i];
        if (needed(key) && !json_object_get(object, key->name) &&
            !(optional && strcmp(key->name, optional) == 0))
            return tfm_error_set(err, TFM_STATUS_FORMAT, "%s: %s\"%s\" is missing", path,
                                 table->where, key->name);
    }
    return TFM_STATUS_OK;
}

/* What other keys imply. */
static enum tfm_status finish(const char *path, struct tfm_nn_decoder *c, struct tfm_error *err)
{
    if (!c->kv_heads)
        c->kv_heads = c->heads;
    if (!c->head_dim && c->width % c->heads)
        return tfm_error_set(
            err, TFM_STATUS_FORMAT,
            "%s: \"width\" %lld is no multiple of \"heads\" %lld; give \"head_dim\"", path,
            (long long)c->width, (long long)c->heads);
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
    return TFM_STATUS_OK;
}

static enum tfm_status read_decoder(const char *path, json_t *root, int64_t vocab,
                                    struct tfm_nn_decoder *decoder, struct tfm_error *err)
{
    *decoder = (struct tfm_nn_decoder){.vocab = vocab};
    const enum tfm_status status =
        read_keys(path, &decoder_table, root, decoder, "train", vocab ? "vocab" : NULL, err);

    if (status != TFM_STATUS_OK)
        return status;
    if (vocab && decoder->vocab != vocab)
        return tfm_error_set(
            err, TFM_STATUS_FORMAT,
            "%s: \"vocab\" is %lld, but the tokenizer has %lld tokens; leave the key "
            "out, or take the tokenizer that belongs to it",
            path, (long long)decoder->vocab, (long long)vocab);
    return finish(path, decoder, err);
}

/* "train" decides how weights are stored; a key that says otherwise would be passed over. */
static enum tfm_status refuse_storage(const char *path, const json_t *root, struct tfm_error *err)
{
    for (size_t i = 0; i < decoder_table.n; i++) {
        const struct key *key = &decoder_table.keys[i];
        const char *word = json_string_value(json_object_get(root, key->name));
        if (key->kind == &kind_DTYPE && key->offset != offsetof(struct tfm_nn_decoder, cache) &&
            word && strcmp(word, "f32") != 0)
            return tfm_error_set(
                err, TFM_STATUS_FORMAT,
                "%s: \"%s\" is \"%s\", but \"compute\" of \"train\" says how weights "
                "are stored; leave the key out",
                path, key->name, word);
    }
    return TFM_STATUS_OK;
}

static enum tfm_status read_train(const char *path, json_t *root,
                                  const struct tfm_nn_decoder *decoder,
                                  struct tfm_trainer_settings *settings, struct tfm_error *err)
{
    json_t *object = json_object_get(root, "train");

    if (!object)
        return tfm_error_set(err, TFM_STATUS_FORMAT,
                             "%s: \"train\" is missing, the object that says how to train", path);
    if (!json_is_object(object))
        return tfm_error_set(err, TFM_STATUS_FORMAT, "%s: \"train\" is no JSON object", path);
    tfm_trainer_settings_defaults(settings);
    enum tfm_status status = read_keys(path, &train_table, object, settings, NULL, NULL, err);
    if (status == TFM_STATUS_OK)
        status = refuse_storage(path, root, err);
    if (status == TFM_STATUS_OK && decoder) {
        status = tfm_trainer_settings_check(settings, decoder, err);
        if (status != TFM_STATUS_OK)
            tfm_error_prefix(err, "%s", path);
    }
    return status;
}

/* The layers are those of a model: keys of them would be passed over. */
static enum tfm_status refuse_decoder(const char *path, json_t *root, struct tfm_error *err)
{
    const char *name;
    json_t *value;

    json_object_foreach(root, name, value)
    {
        if (strcmp(name, "train") != 0)
            return tfm_error_set(
                err, TFM_STATUS_FORMAT,
                "%s: \"%.60s\" stands beside \"train\", but the layers are those of "
                "the model that is given; leave the key out",
                path, name);
    }
    return TFM_STATUS_OK;
}

int tfm__config_is_own(const json_t *config)
{
    const char *type = json_string_value(json_object_get(config, "model_type"));
    return type && strcmp(type, "tfm") == 0;
}

static enum tfm_status own_decoder(const char *path, const json_t *config, json_t **decoder,
                                   struct tfm_error *err)
{
    *decoder = json_object_get(config, "decoder");
    return json_is_object(*decoder)
               ? TFM_STATUS_OK
               : tfm_error_set(err, TFM_STATUS_FORMAT,
                               "%s: \"decoder\" is missing, or no JSON object", path);
}

static enum tfm_status read_object(const char *path, json_t *root, int64_t vocab,
                                   struct tfm_nn_decoder *decoder,
                                   struct tfm_trainer_settings *settings, struct tfm_error *err)
{
    struct tfm_trainer_settings checked;

    if (!json_is_object(root))
        return tfm_error_set(err, TFM_STATUS_FORMAT, "%s: no JSON object", path);
    if (tfm__config_is_own(root)) {
        const enum tfm_status status = own_decoder(path, root, &root, err);
        if (status != TFM_STATUS_OK)
            return status;
    }
    const enum tfm_status status =
        decoder ? read_decoder(path, root, vocab, decoder, err) : refuse_decoder(path, root, err);
    if (status != TFM_STATUS_OK || (!settings && !json_object_get(root, "train")))
        return status;
    return read_train(path, root, decoder, settings ? settings : &checked, err);
}

enum tfm_status tfm_config_parse(const char *name, const char *text, size_t size, int64_t vocab,
                                 struct tfm_nn_decoder *decoder,
                                 struct tfm_trainer_settings *settings, struct tfm_error *err)
{
    struct tfm_nn_decoder layers;
    struct tfm_trainer_settings training;
    json_error_t why;

    tfm_error_clear(err);
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
    if (!root)
        return tfm_error_set(err, TFM_STATUS_FORMAT, "%s: line %d, column %d: %s", name, why.line,
                             why.column, why.text);
    const enum tfm_status status =
        read_object(name, root, vocab, decoder ? &layers : NULL, settings ? &training : NULL, err);
    json_decref(root);
    if (status == TFM_STATUS_OK && decoder)
        *decoder = layers;
    if (status == TFM_STATUS_OK && settings)
        *settings = training;
    return status;
}

enum tfm_status tfm__config_decoder(const char *path, const json_t *config,
                                    struct tfm_nn_decoder *decoder, struct tfm_error *err)
{
    json_t *object;
    enum tfm_status status = own_decoder(path, config, &object, err);

    *decoder = (struct tfm_nn_decoder){0};
    if (status == TFM_STATUS_OK)
        status = read_keys(path, &decoder_table, object, decoder, NULL, NULL, err);
    return status == TFM_STATUS_OK ? finish(path, decoder, err) : status;
}
