/* SPDX-License-Identifier: MIT
 * Reads safetensors files. The header is JSON and is read by jansson; what it says of places and sizes is
 * believed only after it was held against the file: the ranges of all tensors, in order, must cover the
 * data without a hole and without a byte twice. */
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/safetensors.h>

#include "lib/core/checked.h"
#include "lib/core/map.h"
#include "lib/llm/gguf_internal.h"
#include "lib/llm/safetensors_types.h"
#include "lib/llm/text.h"

enum { LENGTH_BYTES = 8, HEADER_MAX_BYTES = 100000000 };

struct tfm_safetensors {
    char *name;
    struct tfm__map map;
    json_t *header;
    json_t *metadata; /* of the header; NULL = none */
    struct tfm_safetensor *tensors;
    const struct tfm_safetensor **by_name; /* sorted */
    size_t n;
};

static TFM_PRINTF(4, 5) enum tfm_status fail(const struct tfm_safetensors *file, const char *tensor,
                                             struct tfm_error *err, const char *format, ...)
{
    struct tfm__quoted quoted;
    char what[400];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (!tensor)
        return tfm_error_set(err, TFM_STATUS_FORMAT, "%s: %s", file->name, what);
    return tfm_error_set(err, TFM_STATUS_FORMAT, "%s: tensor %s: %s", file->name,
                         tfm__text_quote((struct tfm_text){tensor, strlen(tensor)}, &quoted), what);
}

static enum tfm_status no_memory(const struct tfm_safetensors *file, struct tfm_error *err)
{
    return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", file->name);
}

/* The header as JSON; *begin = where the data begin. */
static enum tfm_status read_header(struct tfm_safetensors *file, size_t *begin,
                                   struct tfm_error *err)
{
    const struct tfm__map *map = &file->map;
    json_error_t why;

    if (map->size < LENGTH_BYTES)
        return fail(file, NULL, err, "a file of %zu bytes, a safetensors file has %d and a header",
                    map->size, LENGTH_BYTES);
    const uint64_t length = tfm__le_load(map->base, LENGTH_BYTES);
    if (length > HEADER_MAX_BYTES)
        return fail(file, NULL, err,
                    "a header of %llu bytes, at most %d: not a safetensors file, or malformed",
                    (unsigned long long)length, HEADER_MAX_BYTES);
    if (length > map->size - LENGTH_BYTES)
        return fail(file, NULL, err,
                    "a header of %llu bytes, the file has %zu more: it is truncated, get it again",
                    (unsigned long long)length, map->size - LENGTH_BYTES);
    const char *text = (const char *)map->base + LENGTH_BYTES;
    if (length < 2 || text[0] != '{')
        return fail(file, NULL, err, "its header does not begin with '{': not a safetensors file");
    file->header = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &why);
    if (!file->header)
        return json_error_code(&why) == json_error_out_of_memory
                   ? no_memory(file, err)
                   : fail(file, NULL, err, "its header is no JSON: byte %d: %s",
                          LENGTH_BYTES + why.position, why.text);
    if (!json_is_object(file->header))
        return fail(file, NULL, err, "its header is no JSON object");
    *begin = LENGTH_BYTES + (size_t)length;
    return TFM_STATUS_OK;
}

static enum tfm_status read_metadata(struct tfm_safetensors *file, struct tfm_error *err)
{
    const char *key;
    json_t *value;

    file->metadata = json_object_get(file->header, "__metadata__");
    if (!file->metadata)
        return TFM_STATUS_OK;
    if (!json_is_object(file->metadata))
        return fail(file, NULL, err, "__metadata__ is no JSON object");
    json_object_foreach(file->metadata, key, value)
    {
        if (!json_is_string(value))
            return fail(file, NULL, err, "__metadata__ holds a value that is no text");
    }
    return TFM_STATUS_OK;
}

static enum tfm_status read_type(const struct tfm_safetensors *file, struct tfm_safetensor *tensor,
                                 const json_t *value, size_t *bytes, struct tfm_error *err)
{
    const char *name = json_string_value(value);

    if (!name)
        return fail(file, tensor->name, err, "its dtype is missing or no text");
    for (size_t i = 0; i < TFM__SAFETENSORS_TYPES; i++) {
        if (strcmp(tfm__safetensors_types[i].name, name) != 0)
            continue;
        tensor->type_name = tfm__safetensors_types[i].name;
        tensor->known = tfm__safetensors_types[i].dtype >= 0;
        tensor->dtype =
            tensor->known ? (enum tfm_dtype)tfm__safetensors_types[i].dtype : TFM_DTYPE_COUNT;
        *bytes = tfm__safetensors_types[i].bytes;
        return TFM_STATUS_OK;
    }
    struct tfm__quoted quoted;
    return fail(file, tensor->name, err, "dtype %s is not known",
                tfm__text_quote((struct tfm_text){name, strlen(name)}, &quoted));
}

/* A whole number from 0 to 2^63 - 1. Returns 1 if it is none. */
static int read_number(const json_t *value, size_t *number)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (uint64_t)json_integer_value(value) > SIZE_MAX)
        return 1;
    *number = (size_t)json_integer_value(value);
    return 0;
}

static enum tfm_status read_tensor(const struct tfm_safetensors *file,
                                   struct tfm_safetensor *tensor, const json_t *entry, size_t begin,
                                   struct tfm_error *err)
{
    const json_t *shape = json_object_get(entry, "shape"),
                 *offsets = json_object_get(entry, "data_offsets");
    const size_t data = file->map.size - begin;
    size_t bytes = 0, from, to;
    enum tfm_status status = read_type(file, tensor, json_object_get(entry, "dtype"), &bytes, err);

    if (status != TFM_STATUS_OK)
        return status;
    if (!json_is_array(shape) || json_array_size(shape) > TFM_SAFETENSORS_RANK)
        return fail(file, tensor->name, err, "its shape is missing, or has more than %d extents",
                    TFM_SAFETENSORS_RANK);
    tensor->rank = (int32_t)json_array_size(shape);
    for (size_t i = 0; i < (size_t)tensor->rank; i++) {
        size_t extent;
        if (read_number(json_array_get(shape, i), &extent))
            return fail(file, tensor->name, err, "extent %zu of its shape is no whole number", i);
        if (tfm__mul_size(bytes, extent, &bytes))
            return fail(file, tensor->name, err, "the product of its extents overflows");
        tensor->shape[i] = (int64_t)extent;
    }
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 ||
        read_number(json_array_get(offsets, 0), &from) ||
        read_number(json_array_get(offsets, 1), &to))
        return fail(file, tensor->name, err, "its data_offsets are no two whole numbers");
    if (from > to || to > data)
        return fail(file, tensor->name, err,
                    "its data are bytes %zu to %zu, the file has %zu: it is truncated or malformed",
                    from, to, data);
    if (to - from != bytes)
        return fail(file, tensor->name, err, "its data are %zu bytes, its shape needs %zu",
                    to - from, bytes);
    tensor->data = file->map.base + begin + from;
    tensor->bytes = bytes;
    return TFM_STATUS_OK;
}

static int order_data(const void *a, const void *b)
{
    const struct tfm_safetensor *x = a, *y = b;
    const unsigned char *p = x->data, *q = y->data;
    /* an empty one before the one that begins where it stands */
    return p != q ? (p > q) - (p < q) : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static int order_names(const void *a, const void *b)
{
    return strcmp((*(const struct tfm_safetensor *const *)a)->name,
                  (*(const struct tfm_safetensor *const *)b)->name);
}

/* No byte twice, none that belongs to nobody. */
static enum tfm_status check_cover(const struct tfm_safetensors *file, size_t begin,
                                   struct tfm_error *err)
{
    const unsigned char *at = file->map.base + begin, *end = file->map.base + file->map.size;

    for (size_t i = 0; i < file->n; i++) {
        const struct tfm_safetensor *tensor = &file->tensors[i];
        const unsigned char *data = tensor->data;
        if (data != at)
            return fail(file, tensor->name, err, "its data begin at byte %td, must be %td: %s",
                        data - file->map.base - (ptrdiff_t)begin,
                        at - file->map.base - (ptrdiff_t)begin,
                        data < at ? "two tensors share data" : "a hole");
        at = data + tensor->bytes;
    }
    if (at != end)
        return fail(file, NULL, err, "%td bytes behind the last tensor belong to none", end - at);
    return TFM_STATUS_OK;
}

static enum tfm_status parse(struct tfm_safetensors *file, struct tfm_error *err)
{
    size_t begin = 0;
    const char *name;
    json_t *entry;
    enum tfm_status status = read_header(file, &begin, err);

    if (status == TFM_STATUS_OK)
        status = read_metadata(file, err);
    if (status != TFM_STATUS_OK)
        return status;
    const size_t count = json_object_size(file->header);
    file->tensors = calloc(count + 1, sizeof *file->tensors);
    file->by_name = calloc(count + 1, sizeof *file->by_name);
    if (!file->tensors || !file->by_name)
        return no_memory(file, err);
    json_object_foreach(file->header, name, entry)
    {
        if (entry == file->metadata)
            continue;
        struct tfm_safetensor *tensor = &file->tensors[file->n++];
        tensor->name = name;
        if (!json_is_object(entry))
            return fail(file, name, err, "its entry is no JSON object");
        status = read_tensor(file, tensor, entry, begin, err);
        if (status != TFM_STATUS_OK)
            return status;
    }
    qsort(file->tensors, file->n, sizeof *file->tensors, order_data);
    for (size_t i = 0; i < file->n; i++)
        file->by_name[i] = &file->tensors[i];
    qsort(file->by_name, file->n, sizeof *file->by_name, order_names);
    return check_cover(file, begin, err);
}

/* Takes the map over. */
static enum tfm_status create(const char *name, struct tfm__map *map, struct tfm_safetensors **file,
                              struct tfm_error *err)
{
    struct tfm_safetensors *f = calloc(1, sizeof *f);
    enum tfm_status status;

    if (f)
        f->name = strdup(name);
    if (!f || !f->name) {
        free(f);
        tfm__map_close(map);
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", name);
    }
    f->map = *map;
    status = parse(f, err);
    if (status != TFM_STATUS_OK)
        tfm_safetensors_close(f);
    else
        *file = f;
    return status;
}

enum tfm_status tfm_safetensors_open(const char *path, struct tfm_safetensors **file,
                                     struct tfm_error *err)
{
    struct tfm__map map = {0};
    enum tfm_status status;

    tfm_error_clear(err);
    status = tfm__map_open(&map, path, "a .safetensors file", err);
    return status == TFM_STATUS_OK ? create(path, &map, file, err) : status;
}

enum tfm_status tfm_safetensors_open_memory(const void *data, size_t size, const char *name,
                                            struct tfm_safetensors **file, struct tfm_error *err)
{
    struct tfm__map map = {data ? data : (const void *)"", data ? size : 0, 0};

    tfm_error_clear(err);
    return create(name ? name : "memory", &map, file, err);
}

void tfm_safetensors_close(struct tfm_safetensors *file)
{
    if (!file)
        return;
    json_decref(file->header);
    tfm__map_close(&file->map);
    free(file->by_name);
    free(file->tensors);
    free(file->name);
    free(file);
}

const char *tfm_safetensors_path(const struct tfm_safetensors *file)
{
    return file->name;
}

size_t tfm_safetensors_size(const struct tfm_safetensors *file)
{
    return file->map.size;
}

size_t tfm_safetensors_count(const struct tfm_safetensors *file)
{
    return file->n;
}

const struct tfm_safetensor *tfm_safetensors_at(const struct tfm_safetensors *file, size_t index)
{
    return index < file->n ? &file->tensors[index] : NULL;
}

const struct tfm_safetensor *tfm_safetensors_find(const struct tfm_safetensors *file,
                                                  const char *name)
{
    size_t low = 0, high = file->n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(name, file->by_name[middle]->name);
        if (order == 0)
            return file->by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const char *tfm_safetensors_metadata(const struct tfm_safetensors *file, const char *key)
{
    return json_string_value(json_object_get(file->metadata, key));
}

void tfm_safetensors_drop(const struct tfm_safetensors *file, const void *data, size_t bytes)
{
    tfm__map_drop(&file->map, data, bytes);
}
