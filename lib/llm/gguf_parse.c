/* SPDX-License-Identifier: MIT
 * Reads header and metadata of a GGUF file and checks all of it. Nothing in the file is believed: each
 * count is held against the bytes that are left before anything is allocated or skipped, so time and
 * memory stay in proportion to the file. */
#include <stdlib.h>

#include "lib/core/checked.h"
#include "lib/llm/gguf_reader.h"

enum {
    HEADER_BYTES = 24,
    PAIR_MIN_BYTES = 13,   /* key length, type, one byte of value */
    TENSOR_MIN_BYTES = 32, /* name length, n_dims, one dim, type, offset */
    KEY_MAX_BYTES = 64 << 10,
    STRING_MAX_BYTES = 16 << 20,
};

static enum tfm_status parse_header(struct tfm__reader *r, uint64_t *n_pairs, uint64_t *n_tensors)
{
    const unsigned char *base = r->gguf->base;
    size_t size = r->gguf->size;
    uint64_t version;

    if (size == 0)
        return tfm__reader_fail(r, 0, "the file is empty");
    if (memcmp(base, "GGUF", size < 4 ? size : 4) != 0)
        return tfm__reader_fail(r, 0, "it does not begin with \"GGUF\": not a GGUF model file");
    if (size < HEADER_BYTES)
        return tfm__reader_fail(r, size,
                                "a file of %zu bytes, the header alone has %d: it is truncated",
                                size, HEADER_BYTES);
    version = tfm__le_load(base + 4, 4);
    *n_tensors = tfm__le_load(base + 8, 8);
    *n_pairs = tfm__le_load(base + 16, 8);
    if (version != 0 && (version & 0xffff) == 0)
        return tfm__reader_fail(
            r, 4, "version 0x%08llx: the file looks big-endian, TFM reads little-endian ones",
            (unsigned long long)version);
    if (version != 2 && version != 3)
        return tfm__reader_fail(r, 4, "version %llu, TFM reads 2 and 3: convert the model again",
                                (unsigned long long)version);
    r->at = HEADER_BYTES;
    if (*n_tensors > tfm__reader_left(r) / TENSOR_MIN_BYTES)
        return tfm__reader_fail(
            r, 8, "%llu tensors do not fit in the %zu bytes that follow: truncated or malformed",
            (unsigned long long)*n_tensors, tfm__reader_left(r));
    if (*n_pairs > tfm__reader_left(r) / PAIR_MIN_BYTES)
        return tfm__reader_fail(
            r, 16,
            "%llu metadata keys do not fit in the %zu bytes that follow: truncated or malformed",
            (unsigned long long)*n_pairs, tfm__reader_left(r));
    return TFM_STATUS_OK;
}

static enum tfm_status check_bools(const struct tfm__reader *r, const unsigned char *data,
                                   size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (data[i] > 1)
            return tfm__reader_fail(r, (size_t)(data - r->gguf->base) + i,
                                    "bool of value %u, must be 0 or 1", data[i]);
    return TFM_STATUS_OK;
}

static enum tfm_status parse_array(struct tfm__reader *r, struct tfm_gguf_array *array)
{
    uint64_t type, count;
    size_t at = r->at, bytes, element;
    const unsigned char *data = r->gguf->base + r->at;
    enum tfm_status status = tfm__reader_number(r, 4, "element type", &type);

    if (status != TFM_STATUS_OK)
        return status;
    if (type == TFM_GGUF_ARRAY)
        return tfm__reader_fail(r, at, "an array of arrays is not part of the format");
    if (type > TFM_GGUF_F64)
        return tfm__reader_fail(r, at, "element type %llu is none of 0..12",
                                (unsigned long long)type);
    status = tfm__reader_number(r, 8, "element count", &count);
    if (status != TFM_STATUS_OK)
        return status;

    /* a string takes at least its length */
    element = type == TFM_GGUF_STRING ? 8 : tfm__gguf_type_bytes((uint32_t)type);
    if (count > tfm__reader_left(r) / element)
        return tfm__reader_fail(
            r, at,
            "array of %llu elements of type %s, the file has %zu more bytes: it is "
            "truncated or malformed",
            (unsigned long long)count, tfm__gguf_type_name((uint32_t)type), tfm__reader_left(r));
    array->type = (enum tfm_gguf_type)type;
    array->count = (size_t)count;
    array->elements = r->gguf->base + r->at;
    if (type == TFM_GGUF_STRING) {
        for (size_t i = 0; i < array->count && status == TFM_STATUS_OK; i++) {
            struct tfm_text text;
            status = tfm__reader_text(r, STRING_MAX_BYTES, "string in an array", &text);
        }
        return status;
    }
    if (tfm__mul_size(array->count, element, &bytes))
        return tfm__reader_fail(r, at, "array size overflows");
    status = tfm__reader_take(r, bytes, "array", &data);
    if (status == TFM_STATUS_OK && type == TFM_GGUF_BOOL)
        status = check_bools(r, data, array->count);
    return status;
}

static enum tfm_status parse_pair(struct tfm__reader *r, struct tfm__gguf_pair *pair)
{
    uint64_t type;
    size_t at = r->at;
    enum tfm_status status = tfm__reader_text(r, KEY_MAX_BYTES, "key", &pair->key);

    if (status != TFM_STATUS_OK)
        return status;
    if (pair->key.size == 0)
        return tfm__reader_fail(r, at, "the key is empty");
    r->subject = pair->key;
    at = r->at;
    status = tfm__reader_number(r, 4, "type", &type);
    if (status != TFM_STATUS_OK)
        return status;
    if (type > TFM_GGUF_F64)
        return tfm__reader_fail(r, at, "type %llu is none of 0..12", (unsigned long long)type);
    pair->type = (enum tfm_gguf_type)type;
    if (pair->type == TFM_GGUF_STRING)
        return tfm__reader_text(r, STRING_MAX_BYTES, "string", &pair->value.text);
    if (pair->type == TFM_GGUF_ARRAY)
        return parse_array(r, &pair->value.array);
    status =
        tfm__reader_take(r, tfm__gguf_type_bytes((uint32_t)type), "value", &pair->value.number);
    if (status == TFM_STATUS_OK && pair->type == TFM_GGUF_BOOL)
        status = check_bools(r, pair->value.number, 1);
    return status;
}

static int order_pairs(const void *a, const void *b)
{
    return tfm__text_compare((*(const struct tfm__gguf_pair *const *)a)->key,
                             (*(const struct tfm__gguf_pair *const *)b)->key);
}

static enum tfm_status index_pairs(struct tfm__reader *r)
{
    struct tfm_gguf *g = r->gguf;

    g->pairs_by_key = calloc(g->n_pairs ? g->n_pairs : 1, sizeof *g->pairs_by_key);
    if (!g->pairs_by_key)
        return tfm__reader_no_memory(r);
    for (size_t i = 0; i < g->n_pairs; i++)
        g->pairs_by_key[i] = &g->pairs[i];
    qsort(g->pairs_by_key, g->n_pairs, sizeof *g->pairs_by_key, order_pairs);
    for (size_t i = 1; i < g->n_pairs; i++) {
        r->subject = g->pairs_by_key[i]->key;
        if (tfm__text_compare(g->pairs_by_key[i - 1]->key, r->subject) == 0)
            return tfm__reader_fail(r, (size_t)((const unsigned char *)r->subject.data - g->base),
                                    "the key is there twice");
    }
    return TFM_STATUS_OK;
}

static enum tfm_status parse_pairs(struct tfm__reader *r, uint64_t count)
{
    struct tfm_gguf *g = r->gguf;
    size_t capacity = 0;
    enum tfm_status status;

    r->kind = "key";
    for (r->index = 0; r->index < count; r->index++) {
        void *list = g->pairs;
        if (tfm__reader_grow(&list, g->n_pairs, &capacity, sizeof *g->pairs))
            return tfm__reader_no_memory(r);
        g->pairs = list;
        r->subject.data = NULL;
        status = parse_pair(r, &g->pairs[g->n_pairs]);
        if (status != TFM_STATUS_OK)
            return status;
        g->n_pairs++;
    }
    return index_pairs(r);
}

enum tfm_status tfm__gguf_parse(struct tfm_gguf *gguf, struct tfm_error *err)
{
    struct tfm__reader r = {.gguf = gguf, .err = err};
    uint64_t n_pairs = 0, n_tensors = 0;
    enum tfm_status status = parse_header(&r, &n_pairs, &n_tensors);

    if (status == TFM_STATUS_OK)
        status = parse_pairs(&r, n_pairs);
    if (status == TFM_STATUS_OK)
        status = tfm__gguf_parse_tensors(&r, n_tensors);
    return status;
}
