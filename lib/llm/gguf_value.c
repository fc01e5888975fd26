/* SPDX-License-Identifier: MIT
 * Typed metadata of a GGUF file. Callers say what they want and get it or an error: a pointer to
 * elements of another type than they think cannot happen. */
#include "lib/llm/gguf_internal.h"
#include "lib/llm/text.h"

static const struct {
    const char *name;
    size_t bytes;
} types[] = {
    [TFM_GGUF_U8] = {"u8", 1},         [TFM_GGUF_I8] = {"i8", 1},
    [TFM_GGUF_U16] = {"u16", 2},       [TFM_GGUF_I16] = {"i16", 2},
    [TFM_GGUF_U32] = {"u32", 4},       [TFM_GGUF_I32] = {"i32", 4},
    [TFM_GGUF_F32] = {"f32", 4},       [TFM_GGUF_BOOL] = {"bool", 1},
    [TFM_GGUF_STRING] = {"string", 0}, [TFM_GGUF_ARRAY] = {"array", 0},
    [TFM_GGUF_U64] = {"u64", 8},       [TFM_GGUF_I64] = {"i64", 8},
    [TFM_GGUF_F64] = {"f64", 8},
};

const char *tfm__gguf_type_name(uint32_t type)
{
    return type < sizeof types / sizeof *types ? types[type].name : "?";
}

size_t tfm__gguf_type_bytes(uint32_t type)
{
    return type < sizeof types / sizeof *types ? types[type].bytes : 0;
}

const struct tfm__gguf_pair *tfm__gguf_pair(const struct tfm_gguf *gguf, struct tfm_text key)
{
    size_t low = 0, high = gguf->n_pairs;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = tfm__text_compare(key, gguf->pairs_by_key[middle]->key);
        if (order == 0)
            return gguf->pairs_by_key[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static enum tfm_status find(const struct tfm_gguf *gguf, const char *key,
                            const struct tfm__gguf_pair **pair, struct tfm_error *err)
{
    const struct tfm_text text = {key, strlen(key)};

    tfm_error_clear(err);
    *pair = tfm__gguf_pair(gguf, text);
    if (!*pair)
        return tfm_error_set(err, TFM_STATUS_NOT_FOUND, "%s: no key '%s'", gguf->name, key);
    return TFM_STATUS_OK;
}

static enum tfm_status wrong_type(const struct tfm_gguf *gguf, const struct tfm__gguf_pair *pair,
                                  const char *wanted, struct tfm_error *err)
{
    struct tfm__quoted quoted;
    return tfm_error_set(err, TFM_STATUS_FORMAT, "%s: key %s, byte %zu: of type %s, must be %s",
                         gguf->name, tfm__text_quote(pair->key, &quoted),
                         (size_t)((const unsigned char *)pair->key.data - gguf->base),
                         tfm__gguf_type_name(pair->type), wanted);
}

/* An integer of any width as sign and magnitude. Returns 1 if the type is no integer. */
static int load_int(enum tfm_gguf_type type, const unsigned char *data, int *negative,
                    uint64_t *magnitude)
{
    size_t bytes = tfm__gguf_type_bytes(type);
    uint64_t value, sign;

    switch (type) {
    case TFM_GGUF_U8:
    case TFM_GGUF_U16:
    case TFM_GGUF_U32:
    case TFM_GGUF_U64:
        *negative = 0;
        *magnitude = tfm__le_load(data, bytes);
        return 0;
    case TFM_GGUF_I8:
    case TFM_GGUF_I16:
    case TFM_GGUF_I32:
    case TFM_GGUF_I64:
        value = tfm__le_load(data, bytes);
        sign = UINT64_C(1) << (8 * bytes - 1);
        *negative = (value & sign) != 0;
        *magnitude = *negative ? sign - (value & ~sign) : value;
        return 0;
    default:
        return 1;
    }
}

/* Returns 1 if the type is no float. */
static int load_float(enum tfm_gguf_type type, const unsigned char *data, double *value)
{
    if (type == TFM_GGUF_F32) {
        uint32_t bits = (uint32_t)tfm__le_load(data, 4);
        float f;
        memcpy(&f, &bits, sizeof f);
        *value = (double)f;
        return 0;
    }
    if (type == TFM_GGUF_F64) {
        uint64_t bits = tfm__le_load(data, 8);
        memcpy(value, &bits, sizeof *value);
        return 0;
    }
    return 1;
}

enum tfm_status tfm_gguf_uint(const struct tfm_gguf *gguf, const char *key, uint64_t *value,
                              struct tfm_error *err)
{
    const struct tfm__gguf_pair *pair;
    uint64_t magnitude;
    int negative;
    enum tfm_status status = find(gguf, key, &pair, err);

    if (status != TFM_STATUS_OK)
        return status;
    if (load_int(pair->type, pair->value.number, &negative, &magnitude))
        return wrong_type(gguf, pair, "an integer", err);
    if (negative)
        return tfm_error_set(err, TFM_STATUS_FORMAT, "%s: key '%s' is -%llu, must not be negative",
                             gguf->name, key, (unsigned long long)magnitude);
    *value = magnitude;
    return TFM_STATUS_OK;
}

enum tfm_status tfm_gguf_float(const struct tfm_gguf *gguf, const char *key, double *value,
                               struct tfm_error *err)
{
    const struct tfm__gguf_pair *pair;
    enum tfm_status status = find(gguf, key, &pair, err);

    if (status != TFM_STATUS_OK)
        return status;
    if (load_float(pair->type, pair->value.number, value))
        return wrong_type(gguf, pair, "f32 or f64", err);
    return TFM_STATUS_OK;
}

enum tfm_status tfm_gguf_bool(const struct tfm_gguf *gguf, const char *key, int *value,
                              struct tfm_error *err)
{
    const struct tfm__gguf_pair *pair;
    enum tfm_status status = find(gguf, key, &pair, err);

    if (status != TFM_STATUS_OK)
        return status;
    if (pair->type != TFM_GGUF_BOOL)
        return wrong_type(gguf, pair, "bool", err);
    *value = *pair->value.number;
    return TFM_STATUS_OK;
}

enum tfm_status tfm_gguf_string(const struct tfm_gguf *gguf, const char *key,
                                struct tfm_text *value, struct tfm_error *err)
{
    const struct tfm__gguf_pair *pair;
    enum tfm_status status = find(gguf, key, &pair, err);

    if (status != TFM_STATUS_OK)
        return status;
    if (pair->type != TFM_GGUF_STRING)
        return wrong_type(gguf, pair, "string", err);
    *value = pair->value.text;
    return TFM_STATUS_OK;
}

enum tfm_status tfm_gguf_get_array(const struct tfm_gguf *gguf, const char *key,
                                   struct tfm_gguf_array *value, struct tfm_error *err)
{
    const struct tfm__gguf_pair *pair;
    enum tfm_status status = find(gguf, key, &pair, err);

    if (status != TFM_STATUS_OK)
        return status;
    if (pair->type != TFM_GGUF_ARRAY)
        return wrong_type(gguf, pair, "array", err);
    *value = pair->value.array;
    return TFM_STATUS_OK;
}

enum tfm_status tfm_gguf_array_text(const struct tfm_gguf_array *array, struct tfm_text *views,
                                    struct tfm_error *err)
{
    const unsigned char *at = array->elements;

    tfm_error_clear(err);
    if (array->type != TFM_GGUF_STRING)
        return tfm_error_set(err, TFM_STATUS_FORMAT, "elements are of type %s, must be string",
                             tfm__gguf_type_name(array->type));
    /* every length was checked when the file was opened */
    for (size_t i = 0; i < array->count; i++) {
        views[i].size = (size_t)tfm__le_load(at, 8);
        views[i].data = (const char *)at + 8;
        at += 8 + views[i].size;
    }
    return TFM_STATUS_OK;
}

static enum tfm_status element(const struct tfm_gguf_array *array, size_t index,
                               const unsigned char **data, struct tfm_error *err)
{
    tfm_error_clear(err);
    if (index >= array->count)
        return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE, "element %zu of an array of %zu", index,
                             array->count);
    *data = (const unsigned char *)array->elements + index * tfm__gguf_type_bytes(array->type);
    return TFM_STATUS_OK;
}

enum tfm_status tfm_gguf_array_int(const struct tfm_gguf_array *array, size_t index, int64_t *value,
                                   struct tfm_error *err)
{
    const unsigned char *data = NULL;
    uint64_t magnitude;
    int negative;
    enum tfm_status status = element(array, index, &data, err);

    if (status != TFM_STATUS_OK)
        return status;
    if (load_int(array->type, data, &negative, &magnitude))
        return tfm_error_set(err, TFM_STATUS_FORMAT, "elements are of type %s, must be integers",
                             tfm__gguf_type_name(array->type));
    if (!negative && magnitude > INT64_MAX)
        return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE,
                             "element %zu is %llu, must be at most 2^63 - 1", index,
                             (unsigned long long)magnitude);
    *value = !negative ? (int64_t)magnitude : magnitude ? -(int64_t)(magnitude - 1) - 1 : 0;
    return TFM_STATUS_OK;
}

enum tfm_status tfm_gguf_array_float(const struct tfm_gguf_array *array, size_t index,
                                     double *value, struct tfm_error *err)
{
    const unsigned char *data = NULL;
    enum tfm_status status = element(array, index, &data, err);

    if (status != TFM_STATUS_OK)
        return status;
    if (load_float(array->type, data, value))
        return tfm_error_set(err, TFM_STATUS_FORMAT, "elements are of type %s, must be floats",
                             tfm__gguf_type_name(array->type));
    return TFM_STATUS_OK;
}
