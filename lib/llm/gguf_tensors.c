/* SPDX-License-Identifier: MIT
 * Reads the tensor table of a GGUF file: shapes, types and places, each checked against the others and
 * the end of the file. */
#include <stdlib.h>

#include "lib/core/checked.h"
#include "lib/llm/gguf_reader.h"

enum {
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

static enum tfm_status find_alignment(struct tfm__reader *r, size_t *alignment)
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
        return tfm__reader_fail(r, at, "it is of type %s, must be u32",
                                tfm__gguf_type_name(pair->type));
    value = tfm__le_load(pair->value.number, 4);
    if (value == 0 || value > ALIGNMENT_MAX || (value & (value - 1)) != 0)
        return tfm__reader_fail(r, at, "it is %llu, must be a power of two from 1 to %d",
                                (unsigned long long)value, ALIGNMENT_MAX);
    *alignment = (size_t)value;
    return TFM_STATUS_OK;
}

/* Fills rank and shape; *row = elements of the contiguous dimension, *rows = product of the rest. */
static enum tfm_status parse_shape(struct tfm__reader *r, struct tfm_gguf_tensor *tensor,
                                   size_t *row, size_t *rows)
{
    uint64_t n_dims, dim;
    size_t at = r->at, elements = 1;
    enum tfm_status status = tfm__reader_number(r, 4, "number of dimensions", &n_dims);

    if (status != TFM_STATUS_OK)
        return status;
    if (n_dims < 1 || n_dims > 4)
        return tfm__reader_fail(r, at, "%llu dimensions, must be 1 to 4",
                                (unsigned long long)n_dims);
    tensor->rank = (int32_t)n_dims;
    *rows = 1;
    for (size_t i = 0; i < n_dims; i++) {
        at = r->at;
        status = tfm__reader_number(r, 8, "dimension", &dim);
        if (status != TFM_STATUS_OK)
            return status;
        if (dim > INT64_MAX || dim > SIZE_MAX)
            return tfm__reader_fail(r, at, "dimension %zu is %llu: out of range", i,
                                    (unsigned long long)dim);
        tensor->shape[n_dims - 1 - i] = (int64_t)dim;
        if (tfm__mul_size(elements, (size_t)dim, &elements) || elements > INT64_MAX)
            return tfm__reader_fail(
                r, at, "the product of its dimensions overflows at dimension %zu (%llu)", i,
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

static enum tfm_status parse_type(struct tfm__reader *r, struct tfm_gguf_tensor *tensor, size_t row,
                                  size_t rows)
{
    uint64_t number;
    size_t at = r->at;
    const struct ggml_type *type = NULL;
    enum tfm_status status = tfm__reader_number(r, 4, "type", &number);

    if (status != TFM_STATUS_OK)
        return status;
    for (size_t i = 0; i < sizeof ggml_types / sizeof *ggml_types && !type; i++)
        if (ggml_types[i].number == number)
            type = &ggml_types[i];
    if (!type)
        return tfm__reader_fail(r, at, "tensor type %llu is not known", (unsigned long long)number);
    tensor->file_type = (uint32_t)number;
    tensor->type_name = type->name;
    tensor->known = type->dtype != NONE;
    tensor->dtype = tensor->known ? (enum tfm_dtype)type->dtype : TFM_DTYPE_COUNT;
    if (row % type->block != 0)
        return tfm__reader_fail(r, at, "a row of %zu values of type %s, must be a multiple of %zu",
                                row, type->name, type->block);
    if (tfm__mul_size(row / type->block, type->bytes, &tensor->bytes) ||
        tfm__mul_size(tensor->bytes, rows, &tensor->bytes))
        return tfm__reader_fail(r, at, "%zu rows of %zu values of type %s: the size overflows",
                                rows, row, type->name);
    return TFM_STATUS_OK;
}

/* `end` = where the data of the tensors before ends, relative to the data section; moved on. */
static enum tfm_status parse_tensor(struct tfm__reader *r, struct tfm_gguf_tensor *tensor,
                                    size_t alignment, size_t *end)
{
    size_t at = r->at, row = 0, rows = 0, next;
    uint64_t offset;
    enum tfm_status status = tfm__reader_text(r, TENSOR_NAME_MAX, "name", &tensor->name);

    if (status != TFM_STATUS_OK)
        return status;
    if (tensor->name.size == 0)
        return tfm__reader_fail(r, at, "the name is empty");
    r->subject = tensor->name;
    status = parse_shape(r, tensor, &row, &rows);
    if (status == TFM_STATUS_OK)
        status = parse_type(r, tensor, row, rows);
    if (status != TFM_STATUS_OK)
        return status;
    at = r->at;
    status = tfm__reader_number(r, 8, "offset", &offset);
    if (status != TFM_STATUS_OK)
        return status;
    if (offset != *end)
        return tfm__reader_fail(
            r, at, "offset %llu, must be %zu: tensors follow each other aligned to %zu",
            (unsigned long long)offset, *end, alignment);
    if (tfm__add_size(*end, tensor->bytes, &next) || tfm__align_size(next, alignment, end))
        return tfm__reader_fail(r, at, "the sizes of the tensors up to this one overflow");
    return TFM_STATUS_OK;
}

/* Gives each tensor its place; the data section begins at the next aligned byte. */
static enum tfm_status place_tensors(struct tfm__reader *r, size_t alignment)
{
    struct tfm_gguf *g = r->gguf;
    size_t begin, start, end;

    if (tfm__align_size(r->at, alignment, &start))
        return tfm__reader_fail(r, r->at, "the place of the data section overflows");
    for (size_t i = 0; i < g->n_tensors; i++) {
        struct tfm_gguf_tensor *tensor = &g->tensors[i];
        r->subject = tensor->name;
        begin = start;
        if (tensor->bytes == 0) { /* the padding before it may be absent at the end of a file */
            tensor->data = g->base + (begin < g->size ? begin : g->size);
            continue;
        }
        if (tfm__add_size(begin, tensor->bytes, &end))
            return tfm__reader_fail(r, begin, "its end overflows");
        if (end > g->size)
            return tfm__reader_fail(
                r, begin,
                "its %zu bytes end at byte %zu, the file has %zu: %zu bytes are missing, "
                "get it again",
                tensor->bytes, end, g->size, end - g->size);
        tensor->data = g->base + begin;
        if (tfm__align_size(end, alignment, &start))
            return tfm__reader_fail(r, begin, "its end overflows");
    }
    return TFM_STATUS_OK;
}

static enum tfm_status index_tensors(struct tfm__reader *r)
{
    struct tfm_gguf *g = r->gguf;

    g->tensors_by_name = calloc(g->n_tensors ? g->n_tensors : 1, sizeof *g->tensors_by_name);
    if (!g->tensors_by_name)
        return tfm__reader_no_memory(r);
    tfm__gguf_sort(g);
    for (size_t i = 1; i < g->n_tensors; i++) {
        r->subject = g->tensors_by_name[i]->name;
        if (tfm__text_compare(g->tensors_by_name[i - 1]->name, r->subject) == 0)
            return tfm__reader_fail(r, (size_t)((const unsigned char *)r->subject.data - g->base),
                                    "the name is there twice");
    }
    return TFM_STATUS_OK;
}

enum tfm_status tfm__gguf_parse_tensors(struct tfm__reader *r, uint64_t count)
{
    struct tfm_gguf *g = r->gguf;
    size_t capacity = 0, alignment, end = 0;
    enum tfm_status status = find_alignment(r, &alignment);

    if (status != TFM_STATUS_OK)
        return status;
    r->kind = "tensor";
    for (r->index = 0; r->index < count; r->index++) {
        void *list = g->tensors;
        if (tfm__reader_grow(&list, g->n_tensors, &capacity, sizeof *g->tensors))
            return tfm__reader_no_memory(r);
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
