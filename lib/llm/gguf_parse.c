/* SPDX-License-Identifier: MIT
 * Reads header, metadata and tensor table of a GGUF file and checks all of it. Nothing in the file
 * is believed: each count is held against the bytes that are left before anything is allocated or
 * skipped, so time and memory stay in proportion to the file. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/core/checked.h"
#include "lib/llm/gguf_internal.h"
#include "lib/llm/text.h"

enum {
    HEADER_BYTES = 24,
    PAIR_MIN_BYTES = 13,   /* key length, type, one byte of value */
    TENSOR_MIN_BYTES = 32, /* name length, n_dims, one dim, type, offset */
    KEY_MAX_BYTES = 64 << 10,
    STRING_MAX_BYTES = 16 << 20,
    TENSOR_NAME_MAX = 63,
    ALIGNMENT_DEFAULT = 32,
    ALIGNMENT_MAX = 65536,
};

struct ggml_type {
    uint32_t number;
    const char *name;
    size_t block, bytes;
    int dtype; /* NONE: TFM does not read it */
};

enum { NONE = -1 };

static const struct ggml_type ggml_types[] = {
#define TFM_GGML_TYPE(number, NAME, block, bytes, dtype) {number, #NAME, block, bytes, dtype},
#include "lib/llm/gguf_types.def"
#undef TFM_GGML_TYPE
};

/* Position in the file, and what is being read there, for error texts. */
struct reader {
    struct tfm_gguf *gguf;
    size_t at;
    const char *kind; /* "key" or "tensor"; NULL in the header */
    size_t index;
    struct tfm_text subject; /* name of the key or tensor, once known */
    struct tfm_error *err;
};

static enum tfm_status fail(const struct reader *r, size_t at, const char *format, ...)
    TFM_PRINTF(3, 4);

static enum tfm_status fail(const struct reader *r, size_t at, const char *format, ...)
{
    char what[400], where[160] = "header";
    struct tfm__quoted quoted;
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (r->kind && r->subject.data)
        snprintf(where, sizeof where, "%s %s", r->kind, tfm__text_quote(r->subject, &quoted));
    else if (r->kind)
        snprintf(where, sizeof where, "%s %zu", r->kind, r->index);
    return tfm_error_set(r->err, TFM_STATUS_FORMAT, "%s: %s, byte %zu: %s", r->gguf->name, where,
                         at, what);
}

static size_t left(const struct reader *r)
{
    return r->gguf->size - r->at;
}

static enum tfm_status take(struct reader *r, size_t bytes, const char *field,
                            const unsigned char **data)
{
    if (bytes > left(r))
        return fail(r, r->at,
                    "%s needs %zu bytes, the file has %zu more: it is truncated or malformed, "
                    "get it again",
                    field, bytes, left(r));
    *data = r->gguf->base + r->at;
    r->at += bytes;
    return TFM_STATUS_OK;
}

static enum tfm_status take_number(struct reader *r, size_t bytes, const char *field,
                                   uint64_t *value)
{
    const unsigned char *data = NULL;
    enum tfm_status status = take(r, bytes, field, &data);
    if (status == TFM_STATUS_OK)
        *value = tfm__le_load(data, bytes);
    return status;
}

static enum tfm_status take_text(struct reader *r, size_t limit, const char *field,
                                 struct tfm_text *text)
{
    uint64_t size = 0;
    size_t at = r->at;
    const unsigned char *data = NULL;
    enum tfm_status status = take_number(r, 8, field, &size);

    if (status != TFM_STATUS_OK)
        return status;
    if (size > left(r))
        return fail(r, at, "%s of %llu bytes, the file has %zu more: it is truncated or malformed",
                    field, (unsigned long long)size, left(r));
    if (size > limit)
        return fail(r, at, "%s of %llu bytes is longer than %zu", field, (unsigned long long)size,
                    limit);
    status = take(r, (size_t)size, field, &data);
    if (status != TFM_STATUS_OK)
        return status;
    text->data = (const char *)data;
    text->size = (size_t)size;
    return TFM_STATUS_OK;
}

static enum tfm_status check_bools(const struct reader *r, const unsigned char *data, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (data[i] > 1)
            return fail(r, (size_t)(data - r->gguf->base) + i, "bool of value %u, must be 0 or 1",
                        data[i]);
    return TFM_STATUS_OK;
}

static enum tfm_status parse_array(struct reader *r, struct tfm_gguf_array *array)
{
    uint64_t type, count;
    size_t at = r->at, bytes, element;
    const unsigned char *data = r->gguf->base + r->at;
    enum tfm_status status = take_number(r, 4, "element type", &type);

    if (status != TFM_STATUS_OK)
        return status;
    if (type == TFM_GGUF_ARRAY)
        return fail(r, at, "an array of arrays is not part of the format");
    if (type > TFM_GGUF_F64)
        return fail(r, at, "element type %llu is none of 0..12", (unsigned long long)type);
    status = take_number(r, 8, "element count", &count);
    if (status != TFM_STATUS_OK)
        return status;

    /* a string takes at least its length */
    element = type == TFM_GGUF_STRING ? 8 : tfm__gguf_type_bytes((uint32_t)type);
    if (count > left(r) / element)
        return fail(r, at,
                    "array of %llu elements of type %s, the file has %zu more bytes: it is "
                    "truncated or malformed",
                    (unsigned long long)count, tfm__gguf_type_name((uint32_t)type), left(r));
    array->type = (enum tfm_gguf_type)type;
    array->count = (size_t)count;
    array->elements = r->gguf->base + r->at;
    if (type == TFM_GGUF_STRING) {
        for (size_t i = 0; i < array->count && status == TFM_STATUS_OK; i++) {
            struct tfm_text text;
            status = take_text(r, STRING_MAX_BYTES, "string in an array", &text);
        }
        return status;
    }
    if (tfm__mul_size(array->count, element, &bytes))
        return fail(r, at, "array size overflows");
    status = take(r, bytes, "array", &data);
    if (status == TFM_STATUS_OK && type == TFM_GGUF_BOOL)
        status = check_bools(r, data, array->count);
    return status;
}

static enum tfm_status parse_pair(struct reader *r, struct tfm__gguf_pair *pair)
{
    uint64_t type;
    size_t at = r->at;
    enum tfm_status status = take_text(r, KEY_MAX_BYTES, "key", &pair->key);

    if (status != TFM_STATUS_OK)
        return status;
    if (pair->key.size == 0)
        return fail(r, at, "the key is empty");
    r->subject = pair->key;
    at = r->at;
    status = take_number(r, 4, "type", &type);
    if (status != TFM_STATUS_OK)
        return status;
    if (type > TFM_GGUF_F64)
        return fail(r, at, "type %llu is none of 0..12", (unsigned long long)type);
    pair->type = (enum tfm_gguf_type)type;
    if (pair->type == TFM_GGUF_STRING)
        return take_text(r, STRING_MAX_BYTES, "string", &pair->value.text);
    if (pair->type == TFM_GGUF_ARRAY)
        return parse_array(r, &pair->value.array);
    status = take(r, tfm__gguf_type_bytes((uint32_t)type), "value", &pair->value.number);
    if (status == TFM_STATUS_OK && pair->type == TFM_GGUF_BOOL)
        status = check_bools(r, pair->value.number, 1);
    return status;
}

/* Makes room for one more element. The list grows with what was really read, never with what the
 * file promises. */
static int grow(void **list, size_t n, size_t *capacity, size_t element)
{
    size_t wanted = *capacity ? *capacity : 16, bytes;
    void *bigger;

    if (n < *capacity)
        return 0;
    if (*capacity && tfm__mul_size(*capacity, 2, &wanted))
        return 1;
    if (tfm__mul_size(wanted, element, &bytes))
        return 1;
    bigger = realloc(*list, bytes);
    if (!bigger)
        return 1;
    *list = bigger;
    *capacity = wanted;
    return 0;
}

static enum tfm_status no_memory(const struct reader *r)
{
    return tfm_error_set(r->err, TFM_STATUS_NOMEM, "%s: out of memory while reading its header",
                         r->gguf->name);
}

static int order_pairs(const void *a, const void *b)
{
    return tfm__text_compare((*(const struct tfm__gguf_pair *const *)a)->key,
                             (*(const struct tfm__gguf_pair *const *)b)->key);
}

static int order_tensors(const void *a, const void *b)
{
    return tfm__text_compare((*(const struct tfm_gguf_tensor *const *)a)->name,
                             (*(const struct tfm_gguf_tensor *const *)b)->name);
}

static enum tfm_status index_pairs(struct reader *r)
{
    struct tfm_gguf *g = r->gguf;

    g->pairs_by_key = calloc(g->n_pairs ? g->n_pairs : 1, sizeof *g->pairs_by_key);
    if (!g->pairs_by_key)
        return no_memory(r);
    for (size_t i = 0; i < g->n_pairs; i++)
        g->pairs_by_key[i] = &g->pairs[i];
    qsort(g->pairs_by_key, g->n_pairs, sizeof *g->pairs_by_key, order_pairs);
    for (size_t i = 1; i < g->n_pairs; i++) {
        r->subject = g->pairs_by_key[i]->key;
        if (tfm__text_compare(g->pairs_by_key[i - 1]->key, r->subject) == 0)
            return fail(r, (size_t)((const unsigned char *)r->subject.data - g->base),
                        "the key is there twice");
    }
    return TFM_STATUS_OK;
}

static enum tfm_status index_tensors(struct reader *r)
{
    struct tfm_gguf *g = r->gguf;

    g->tensors_by_name = calloc(g->n_tensors ? g->n_tensors : 1, sizeof *g->tensors_by_name);
    if (!g->tensors_by_name)
        return no_memory(r);
    for (size_t i = 0; i < g->n_tensors; i++)
        g->tensors_by_name[i] = &g->tensors[i];
    qsort(g->tensors_by_name, g->n_tensors, sizeof *g->tensors_by_name, order_tensors);
    for (size_t i = 1; i < g->n_tensors; i++) {
        r->subject = g->tensors_by_name[i]->name;
        if (tfm__text_compare(g->tensors_by_name[i - 1]->name, r->subject) == 0)
            return fail(r, (size_t)((const unsigned char *)r->subject.data - g->base),
                        "the name is there twice");
    }
    return TFM_STATUS_OK;
}

static enum tfm_status parse_header(struct reader *r, uint64_t *n_pairs, uint64_t *n_tensors)
{
    const unsigned char *base = r->gguf->base;
    size_t size = r->gguf->size;
    uint64_t version;

    if (size == 0)
        return fail(r, 0, "the file is empty");
    if (memcmp(base, "GGUF", size < 4 ? size : 4) != 0)
        return fail(r, 0, "it does not begin with \"GGUF\": not a GGUF model file");
    if (size < HEADER_BYTES)
        return fail(r, size, "a file of %zu bytes, the header alone has %d: it is truncated", size,
                    HEADER_BYTES);
    version = tfm__le_load(base + 4, 4);
    *n_tensors = tfm__le_load(base + 8, 8);
    *n_pairs = tfm__le_load(base + 16, 8);
    if (version != 0 && (version & 0xffff) == 0)
        return fail(r, 4,
                    "version 0x%08llx: the file looks big-endian, TFM reads little-endian ones",
                    (unsigned long long)version);
    if (version != 2 && version != 3)
        return fail(r, 4, "version %llu, TFM reads 2 and 3: convert the model again",
                    (unsigned long long)version);
    r->at = HEADER_BYTES;
    if (*n_tensors > left(r) / TENSOR_MIN_BYTES)
        return fail(r, 8,
                    "%llu tensors do not fit in the %zu bytes that follow: truncated or malformed",
                    (unsigned long long)*n_tensors, left(r));
    if (*n_pairs > left(r) / PAIR_MIN_BYTES)
        return fail(
            r, 16,
            "%llu metadata keys do not fit in the %zu bytes that follow: truncated or malformed",
            (unsigned long long)*n_pairs, left(r));
    return TFM_STATUS_OK;
}

static enum tfm_status parse_pairs(struct reader *r, uint64_t count)
{
    struct tfm_gguf *g = r->gguf;
    size_t capacity = 0;
    enum tfm_status status;

    r->kind = "key";
    for (r->index = 0; r->index < count; r->index++) {
        void *list = g->pairs;
        if (grow(&list, g->n_pairs, &capacity, sizeof *g->pairs))
            return no_memory(r);
        g->pairs = list;
        r->subject.data = NULL;
        status = parse_pair(r, &g->pairs[g->n_pairs]);
        if (status != TFM_STATUS_OK)
            return status;
        g->n_pairs++;
    }
    return index_pairs(r);
}

static enum tfm_status find_alignment(struct reader *r, size_t *alignment)
{
    static const struct tfm_text key = {"general.alignment", sizeof "general.alignment" - 1};
    const struct tfm__gguf_pair *pair = tfm__gguf_pair(r->gguf, key);
    size_t at;
    uint64_t value;

    *alignment = ALIGNMENT_DEFAULT;
    if (!pair)
        return TFM_STATUS_OK;
    r->subject = key;
    at = (size_t)((const unsigned char *)pair->key.data - r->gguf->base);
    if (pair->type != TFM_GGUF_U32)
        return fail(r, at, "it is of type %s, must be u32", tfm__gguf_type_name(pair->type));
    value = tfm__le_load(pair->value.number, 4);
    if (value == 0 || value > ALIGNMENT_MAX || (value & (value - 1)) != 0)
        return fail(r, at, "it is %llu, must be a power of two from 1 to %d",
                    (unsigned long long)value, ALIGNMENT_MAX);
    *alignment = (size_t)value;
    return TFM_STATUS_OK;
}

/* Fills rank and shape; *row = elements of the contiguous dimension, *rows = product of the others.
 */
static enum tfm_status parse_shape(struct reader *r, struct tfm_gguf_tensor *tensor, size_t *row,
                                   size_t *rows)
{
    uint64_t n_dims, dim;
    size_t at = r->at, elements = 1;
    enum tfm_status status = take_number(r, 4, "number of dimensions", &n_dims);

    if (status != TFM_STATUS_OK)
        return status;
    if (n_dims < 1 || n_dims > 4)
        return fail(r, at, "%llu dimensions, must be 1 to 4", (unsigned long long)n_dims);
    tensor->rank = (int32_t)n_dims;
    *rows = 1;
    for (size_t i = 0; i < n_dims; i++) {
        at = r->at;
        status = take_number(r, 8, "dimension", &dim);
        if (status != TFM_STATUS_OK)
            return status;
        if (dim > INT64_MAX || dim > SIZE_MAX)
            return fail(r, at, "dimension %zu is %llu: out of range", i, (unsigned long long)dim);
        tensor->shape[n_dims - 1 - i] = (int64_t)dim;
        if (tfm__mul_size(elements, (size_t)dim, &elements) || elements > INT64_MAX)
            return fail(r, at, "the product of its dimensions overflows at dimension %zu (%llu)", i,
                        (unsigned long long)dim);
        if (i == 0)
            *row = (size_t)dim;
        else /* a factor of the product above, or 0 beside a row of 0 */
            (void)tfm__mul_size(*rows, (size_t)dim, rows);
    }
    if (elements == 0)
        *rows = 0;
    return TFM_STATUS_OK;
}

static enum tfm_status parse_type(struct reader *r, struct tfm_gguf_tensor *tensor, size_t row,
                                  size_t rows)
{
    uint64_t number;
    size_t at = r->at;
    const struct ggml_type *type = NULL;
    enum tfm_status status = take_number(r, 4, "type", &number);

    if (status != TFM_STATUS_OK)
        return status;
    for (size_t i = 0; i < sizeof ggml_types / sizeof *ggml_types && !type; i++)
        if (ggml_types[i].number == number)
            type = &ggml_types[i];
    if (!type)
        return fail(r, at, "tensor type %llu is not known", (unsigned long long)number);
    tensor->file_type = (uint32_t)number;
    tensor->type_name = type->name;
    tensor->known = type->dtype != NONE;
    tensor->dtype = tensor->known ? (enum tfm_dtype)type->dtype : TFM_DTYPE_COUNT;
    if (row % type->block != 0)
        return fail(r, at, "a row of %zu values of type %s, must be a multiple of %zu", row,
                    type->name, type->block);
    if (tfm__mul_size(row / type->block, type->bytes, &tensor->bytes) ||
        tfm__mul_size(tensor->bytes, rows, &tensor->bytes))
        return fail(r, at, "%zu rows of %zu values of type %s: the size overflows", rows, row,
                    type->name);
    return TFM_STATUS_OK;
}

/* `end` = where the data of the tensors before ends, relative to the data section; moved on. */
static enum tfm_status parse_tensor(struct reader *r, struct tfm_gguf_tensor *tensor,
                                    size_t alignment, size_t *end)
{
    size_t at = r->at, row = 0, rows = 0, next;
    uint64_t offset;
    enum tfm_status status = take_text(r, TENSOR_NAME_MAX, "name", &tensor->name);

    if (status != TFM_STATUS_OK)
        return status;
    if (tensor->name.size == 0)
        return fail(r, at, "the name is empty");
    r->subject = tensor->name;
    status = parse_shape(r, tensor, &row, &rows);
    if (status == TFM_STATUS_OK)
        status = parse_type(r, tensor, row, rows);
    if (status != TFM_STATUS_OK)
        return status;
    at = r->at;
    status = take_number(r, 8, "offset", &offset);
    if (status != TFM_STATUS_OK)
        return status;
    if (offset != *end)
        return fail(r, at, "offset %llu, must be %zu: tensors follow each other aligned to %zu",
                    (unsigned long long)offset, *end, alignment);
    if (tfm__add_size(*end, tensor->bytes, &next) || tfm__align_size(next, alignment, end))
        return fail(r, at, "the sizes of the tensors up to this one overflow");
    return TFM_STATUS_OK;
}

/* Gives each tensor its place; the data section begins at the next aligned byte. */
static enum tfm_status place_tensors(struct reader *r, size_t alignment)
{
    struct tfm_gguf *g = r->gguf;
    size_t begin, start, end;

    if (tfm__align_size(r->at, alignment, &start))
        return fail(r, r->at, "the place of the data section overflows");
    for (size_t i = 0; i < g->n_tensors; i++) {
        struct tfm_gguf_tensor *tensor = &g->tensors[i];
        r->subject = tensor->name;
        begin = start;
        if (tensor->bytes == 0) { /* the padding before it may be absent at the end of a file */
            tensor->data = g->base + (begin < g->size ? begin : g->size);
            continue;
        }
        if (tfm__add_size(begin, tensor->bytes, &end))
            return fail(r, begin, "its end overflows");
        if (end > g->size)
            return fail(r, begin,
                        "its %zu bytes end at byte %zu, the file has %zu: %zu bytes are missing, "
                        "get it again",
                        tensor->bytes, end, g->size, end - g->size);
        tensor->data = g->base + begin;
        if (tfm__align_size(end, alignment, &start))
            return fail(r, begin, "its end overflows");
    }
    return TFM_STATUS_OK;
}

static enum tfm_status parse_tensors(struct reader *r, uint64_t count)
{
    struct tfm_gguf *g = r->gguf;
    size_t capacity = 0, alignment, end = 0;
    enum tfm_status status = find_alignment(r, &alignment);

    if (status != TFM_STATUS_OK)
        return status;
    r->kind = "tensor";
    for (r->index = 0; r->index < count; r->index++) {
        void *list = g->tensors;
        if (grow(&list, g->n_tensors, &capacity, sizeof *g->tensors))
            return no_memory(r);
        g->tensors = list;
        r->subject.data = NULL;
        memset(&g->tensors[g->n_tensors], 0, sizeof *g->tensors);
        status = parse_tensor(r, &g->tensors[g->n_tensors], alignment, &end);
        if (status != TFM_STATUS_OK)
            return status;
        g->n_tensors++;
    }
    status = place_tensors(r, alignment);
    return status == TFM_STATUS_OK ? index_tensors(r) : status;
}

enum tfm_status tfm__gguf_parse(struct tfm_gguf *gguf, struct tfm_error *err)
{
    struct reader r = {.gguf = gguf, .err = err};
    uint64_t n_pairs = 0, n_tensors = 0;
    enum tfm_status status = parse_header(&r, &n_pairs, &n_tensors);

    if (status == TFM_STATUS_OK)
        status = parse_pairs(&r, n_pairs);
    if (status == TFM_STATUS_OK)
        status = parse_tensors(&r, n_tensors);
    return status;
}
