/* SPDX-License-Identifier: MIT
 * Collects metadata as the bytes that the file will hold, and tensors as places in the caller's memory;
 * what a tensor needs of conversion happens while it is written, some rows at a time. */
#include <stdarg.h>
#include <stdio.h>

#include <tfm/gguf_write.h>

#include "lib/core/save.h"
#include "lib/llm/bytes.h"
#include "lib/llm/gguf_internal.h"
#include "lib/llm/put_rows.h"

enum { ALIGNMENT = 32, NAME_MAX_BYTES = 63 };

struct tensor {
    char name[NAME_MAX_BYTES + 1];
    enum tfm_dtype dtype;
    int32_t rank;
    int64_t shape[4];
    size_t rows, row, bytes; /* row = values of the innermost extent, bytes = of all */
    struct tfm_gguf_source source;
};

struct tfm_gguf_writer {
    struct tfm__bytes pairs;
    struct tfm__bytes keys; /* each with its NUL, to find one that is there already */
    uint64_t n_pairs;
    struct tensor *tensors;
    size_t n_tensors, capacity;
    struct tfm_error kept; /* the first thing that went wrong */
};

static const struct {
    uint32_t number;
    int dtype;
} file_types[] = {
#define NONE                                             (-1)
#define TFM_GGML_TYPE(number, NAME, block, bytes, dtype) {number, dtype},
#include "lib/llm/gguf_types.def"
#undef TFM_GGML_TYPE
#undef NONE
};

enum tfm_status tfm_gguf_writer_create(struct tfm_gguf_writer **writer, struct tfm_error *err)
{
    struct tfm_gguf_writer *w = calloc(1, sizeof *w);

    tfm_error_clear(err);
    if (!w)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "out of memory for a GGUF file");
    *writer = w;
    return TFM_STATUS_OK;
}

void tfm_gguf_writer_destroy(struct tfm_gguf_writer *writer)
{
    if (!writer)
        return;
    free(writer->pairs.data);
    free(writer->keys.data);
    free(writer->tensors);
    free(writer);
}

/* ---- metadata ---- */

static int has_key(const struct tfm_gguf_writer *w, const char *key, size_t size)
{
    const char *keys = (const char *)w->keys.data; /* NULL before the first one */

    for (size_t at = 0; at < w->keys.size; at += strlen(keys + at) + 1)
        if (strlen(keys + at) == size && memcmp(keys + at, key, size) == 0)
            return 1;
    return 0;
}

/* Returns 1 if the pair is to be left out. */
static int begin_pair(struct tfm_gguf_writer *w, const char *key, size_t size,
                      enum tfm_gguf_type type)
{
    if (w->kept.status != TFM_STATUS_OK)
        return 1;
    if (size == 0 || memchr(key, 0, size) || has_key(w, key, size)) {
        tfm_error_set(&w->kept, TFM_STATUS_INVALID_ARGUMENT, "key '%.*s' %s",
                      (int)(size < 60 ? size : 60), key,
                      size ? "is there twice, or has a NUL" : "is empty");
        return 1;
    }
    tfm__bytes_put(&w->keys, key, size);
    tfm__bytes_put(&w->keys, "", 1);
    tfm__bytes_text(&w->pairs, key, size);
    tfm__bytes_number(&w->pairs, type, 4);
    w->n_pairs++;
    return 0;
}

void tfm_gguf_writer_uint(struct tfm_gguf_writer *writer, const char *key, enum tfm_gguf_type type,
                          uint64_t value)
{
    size_t bytes = tfm__gguf_type_bytes(type);
    int integer =
        bytes > 0 && type != TFM_GGUF_F32 && type != TFM_GGUF_F64 && type != TFM_GGUF_BOOL;
    int is_signed =
        type == TFM_GGUF_I8 || type == TFM_GGUF_I16 || type == TFM_GGUF_I32 || type == TFM_GGUF_I64;

    if (writer->kept.status != TFM_STATUS_OK)
        return;
    if (!integer ||
        (bytes * 8 - (size_t)is_signed < 64 && value >> (bytes * 8 - (size_t)is_signed) != 0)) {
        tfm_error_set(&writer->kept, TFM_STATUS_INVALID_ARGUMENT,
                      "key '%.60s': %llu does not fit the type %s", key, (unsigned long long)value,
                      tfm__gguf_type_name(type));
        return;
    }
    if (!begin_pair(writer, key, strlen(key), type))
        tfm__bytes_number(&writer->pairs, value, bytes);
}

void tfm_gguf_writer_float(struct tfm_gguf_writer *writer, const char *key, float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    if (!begin_pair(writer, key, strlen(key), TFM_GGUF_F32))
        tfm__bytes_number(&writer->pairs, bits, 4);
}

void tfm_gguf_writer_bool(struct tfm_gguf_writer *writer, const char *key, int value)
{
    if (!begin_pair(writer, key, strlen(key), TFM_GGUF_BOOL))
        tfm__bytes_number(&writer->pairs, value != 0, 1);
}

void tfm_gguf_writer_text(struct tfm_gguf_writer *writer, const char *key, const char *text,
                          size_t size)
{
    if (!begin_pair(writer, key, strlen(key), TFM_GGUF_STRING))
        tfm__bytes_text(&writer->pairs, text, size);
}

static int begin_array(struct tfm_gguf_writer *w, const char *key, enum tfm_gguf_type type,
                       size_t count)
{
    if (begin_pair(w, key, strlen(key), TFM_GGUF_ARRAY))
        return 1;
    tfm__bytes_number(&w->pairs, type, 4);
    tfm__bytes_number(&w->pairs, count, 8);
    return 0;
}

void tfm_gguf_writer_texts(struct tfm_gguf_writer *writer, const char *key,
                           const struct tfm_text *texts, size_t count)
{
    if (begin_array(writer, key, TFM_GGUF_STRING, count))
        return;
    for (size_t i = 0; i < count; i++)
        tfm__bytes_text(&writer->pairs, texts[i].data, texts[i].size);
}

void tfm_gguf_writer_ints(struct tfm_gguf_writer *writer, const char *key, const int32_t *values,
                          size_t count)
{
    if (begin_array(writer, key, TFM_GGUF_I32, count))
        return;
    for (size_t i = 0; i < count; i++)
        tfm__bytes_number(&writer->pairs, (uint32_t)values[i], 4);
}

/* Elements of an array of strings lie in the file as they will lie in the new one. */
static size_t array_bytes(const struct tfm_gguf_array *array)
{
    const unsigned char *begin = array->elements, *at = begin;

    if (array->type != TFM_GGUF_STRING)
        return array->count * tfm__gguf_type_bytes(array->type);
    for (size_t i = 0; i < array->count; i++)
        at += 8 + tfm__le_load(at, 8);
    return (size_t)(at - begin);
}

/* Of how the old file was stored, not of the model. */
static int describes_file(struct tfm_text key)
{
    static const char *const keys[] = {"general.alignment", "general.file_type",
                                       "general.quantization_version"};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strlen(keys[i]) == key.size && memcmp(keys[i], key.data, key.size) == 0)
            return 1;
    return 0;
}

void tfm_gguf_writer_copy(struct tfm_gguf_writer *writer, const struct tfm_gguf *gguf,
                          const char *prefix)
{
    const size_t size = strlen(prefix);

    for (size_t i = 0; i < gguf->n_pairs; i++) {
        const struct tfm__gguf_pair *pair = &gguf->pairs[i];
        if (pair->key.size < size || memcmp(pair->key.data, prefix, size) != 0 ||
            describes_file(pair->key) ||
            begin_pair(writer, pair->key.data, pair->key.size, pair->type))
            continue;
        if (pair->type == TFM_GGUF_STRING) {
            tfm__bytes_text(&writer->pairs, pair->value.text.data, pair->value.text.size);
        } else if (pair->type == TFM_GGUF_ARRAY) {
            const struct tfm_gguf_array *array = &pair->value.array;
            tfm__bytes_number(&writer->pairs, array->type, 4);
            tfm__bytes_number(&writer->pairs, array->count, 8);
            tfm__bytes_put(&writer->pairs, array->elements, array_bytes(array));
        } else {
            tfm__bytes_put(&writer->pairs, pair->value.number, tfm__gguf_type_bytes(pair->type));
        }
    }
}

/* ---- tensors ---- */

uint32_t tfm__gguf_number(enum tfm_dtype dtype)
{
    for (size_t i = 0; i < sizeof file_types / sizeof *file_types; i++)
        if (file_types[i].dtype == (int)dtype)
            return file_types[i].number;
    return UINT32_MAX;
}

static enum tfm_status check_tensor(struct tfm_gguf_writer *w, const char *name, struct tensor *t,
                                    const int64_t *shape)
{
    const struct tfm_dtype_info *to = tfm_dtype_info(t->dtype),
                                *from = tfm_dtype_info(t->source.dtype);
    const int64_t pair_rows = t->source.pair_rows < 0 ? -t->source.pair_rows : t->source.pair_rows;

    if (!*name || strlen(name) > NAME_MAX_BYTES)
        return tfm_error_set(&w->kept, TFM_STATUS_INVALID_ARGUMENT,
                             "tensor name '%.80s' has %zu bytes, must have 1 to %d", name,
                             strlen(name), NAME_MAX_BYTES);
    for (size_t i = 0; i < w->n_tensors; i++)
        if (strcmp(w->tensors[i].name, name) == 0)
            return tfm_error_set(&w->kept, TFM_STATUS_INVALID_ARGUMENT,
                                 "tensor \"%s\" is there twice", name);
    if (!to || !from || tfm__gguf_number(t->dtype) == UINT32_MAX ||
        (t->dtype != t->source.dtype &&
         (to->dtype_class == TFM_DTYPE_INT || from->dtype_class == TFM_DTYPE_INT)))
        return tfm_error_set(&w->kept, TFM_STATUS_DTYPE, "tensor \"%s\": %s cannot be made of %s",
                             name, tfm_dtype_name(t->dtype), tfm_dtype_name(t->source.dtype));
    if (t->rank < 1 || t->rank > 4)
        return tfm_error_set(&w->kept, TFM_STATUS_SHAPE, "tensor \"%s\": rank %d, must be 1 to 4",
                             name, t->rank);
    t->rows = 1;
    for (int32_t i = 0; i < t->rank; i++) {
        t->shape[i] = shape[i];
        if (shape[i] < 1 || (i + 1 < t->rank && tfm__mul_size(t->rows, (size_t)shape[i], &t->rows)))
            return tfm_error_set(&w->kept, TFM_STATUS_SHAPE, "tensor \"%s\": extent %d is %lld",
                                 name, i, (long long)shape[i]);
    }
    t->row = (size_t)shape[t->rank - 1];
    if (pair_rows != 0 && t->rank == 1) { /* a bias of q or k */
        t->rows = t->row;
        t->row = 1;
    }
    if (t->row % to->block != 0 || t->row % from->block != 0)
        return tfm_error_set(&w->kept, TFM_STATUS_SHAPE,
                             "tensor \"%s\": rows of %zu values, must be a multiple of %u for %s",
                             name, t->row, to->block > from->block ? to->block : from->block,
                             to->block > from->block ? to->name : from->name);
    if (pair_rows != 0 && (pair_rows % 2 != 0 || t->rank > 2 || shape[0] % pair_rows != 0))
        return tfm_error_set(&w->kept, TFM_STATUS_SHAPE,
                             "tensor \"%s\": %lld rows are no heads of %lld rows", name,
                             (long long)shape[0], (long long)pair_rows);
    if (tfm__mul_size(t->row / to->block, to->bytes, &t->bytes) ||
        tfm__mul_size(t->bytes, t->rows, &t->bytes) || t->bytes > SIZE_MAX / 2)
        return tfm_error_set(&w->kept, TFM_STATUS_SHAPE, "tensor \"%s\": its size overflows", name);
    return TFM_STATUS_OK;
}

void tfm_gguf_writer_tensor(struct tfm_gguf_writer *writer, const char *name, enum tfm_dtype dtype,
                            int32_t rank, const int64_t *shape,
                            const struct tfm_gguf_source *source)
{
    struct tensor tensor = {.dtype = dtype, .rank = rank, .source = *source};
    size_t bytes;

    if (writer->kept.status != TFM_STATUS_OK ||
        check_tensor(writer, name, &tensor, shape) != TFM_STATUS_OK)
        return;
    memcpy(tensor.name, name, strlen(name));
    if (writer->n_tensors == writer->capacity) {
        size_t capacity = writer->capacity ? 2 * writer->capacity : 64;
        struct tensor *grown =
            tfm__mul_size(capacity, sizeof *grown, &bytes) ? NULL : realloc(writer->tensors, bytes);
        if (!grown) {
            tfm_error_set(&writer->kept, TFM_STATUS_NOMEM, "out of memory for %zu tensors",
                          capacity);
            return;
        }
        writer->tensors = grown;
        writer->capacity = capacity;
    }
    writer->tensors[writer->n_tensors++] = tensor;
}

/* ---- the file ---- */

/* Where it goes: a file, or memory. */
struct sink {
    struct tfm__save *save;
    struct tfm__bytes *memory;
    struct tfm_error *err;
};

static enum tfm_status put(const struct sink *sink, const void *data, size_t size)
{
    if (sink->save)
        return tfm__save_put(sink->save, data, size, sink->err);
    tfm__bytes_put(sink->memory, data, size);
    return sink->memory->failed
               ? tfm_error_set(sink->err, TFM_STATUS_NOMEM, "out of memory for a GGUF file")
               : TFM_STATUS_OK;
}

static size_t padding(size_t size)
{
    return (ALIGNMENT - size % ALIGNMENT) % ALIGNMENT;
}

static enum tfm_status put_piece(void *context, const void *data, size_t size)
{
    return put(context, data, size);
}

static enum tfm_status put_tensor(const struct tensor *t, struct sink *sink)
{
    static const char zeros[ALIGNMENT];
    const struct tfm__put_rows rows = {
        .name = t->name,
        .to = t->dtype,
        .from = t->source.dtype,
        .data = t->source.data,
        .rows = t->rows,
        .row = t->row,
        .pair_rows = t->source.pair_rows,
    };
    const enum tfm_status status = tfm__put_rows(&rows, put_piece, sink, sink->err);

    return status == TFM_STATUS_OK ? put(sink, zeros, padding(t->bytes)) : status;
}

/* Header, metadata and tensor table, up to where the data begin. */
static enum tfm_status make_head(const struct tfm_gguf_writer *w, struct tfm__bytes *head,
                                 struct tfm_error *err)
{
    static const char zeros[ALIGNMENT];
    size_t offset = 0;

    tfm__bytes_put(head, "GGUF", 4);
    tfm__bytes_number(head, 3, 4);
    tfm__bytes_number(head, w->n_tensors, 8);
    tfm__bytes_number(head, w->n_pairs, 8);
    tfm__bytes_put(head, w->pairs.data, w->pairs.size);
    for (size_t i = 0; i < w->n_tensors; i++) {
        const struct tensor *t = &w->tensors[i];
        tfm__bytes_text(head, t->name, strlen(t->name));
        tfm__bytes_number(head, (uint32_t)t->rank, 4);
        for (int32_t k = t->rank; k-- > 0;)
            tfm__bytes_number(head, (uint64_t)t->shape[k], 8);
        tfm__bytes_number(head, tfm__gguf_number(t->dtype), 4); /* checked when it came in */
        tfm__bytes_number(head, offset, 8);
        if (tfm__add_size(offset, t->bytes + padding(t->bytes), &offset))
            return tfm_error_set(err, TFM_STATUS_SHAPE, "the sizes of the tensors overflow");
    }
    tfm__bytes_put(head, zeros, padding(head->size));
    return head->failed || w->pairs.failed || w->keys.failed
               ? tfm_error_set(err, TFM_STATUS_NOMEM, "out of memory for a GGUF file")
               : TFM_STATUS_OK;
}

static enum tfm_status put_file(const struct tfm_gguf_writer *w, struct sink *sink)
{
    struct tfm__bytes head = {NULL, 0, 0, 0};
    enum tfm_status status = make_head(w, &head, sink->err);

    if (status == TFM_STATUS_OK)
        status = put(sink, head.data, head.size);
    free(head.data);
    for (size_t i = 0; i < w->n_tensors && status == TFM_STATUS_OK; i++)
        status = put_tensor(&w->tensors[i], sink);
    return status;
}

enum tfm_status tfm_gguf_writer_save(struct tfm_gguf_writer *writer, const char *path,
                                     struct tfm_error *err)
{
    struct tfm__save save;
    enum tfm_status status;

    tfm_error_clear(err);
    if (writer->kept.status != TFM_STATUS_OK)
        return tfm_error_set(err, writer->kept.status, "%s: %s", path, writer->kept.text);
    status = tfm__save_begin(&save, path, err);
    if (status == TFM_STATUS_OK)
        status = put_file(writer, &(struct sink){&save, NULL, err});
    if (status == TFM_STATUS_OK)
        status = tfm__save_finish(&save, err);
    tfm__save_abandon(&save);
    return status;
}

enum tfm_status tfm_gguf_writer_bytes(struct tfm_gguf_writer *writer, void **data, size_t *size,
                                      struct tfm_error *err)
{
    struct tfm__bytes memory = {NULL, 0, 0, 0};
    enum tfm_status status;

    tfm_error_clear(err);
    if (writer->kept.status != TFM_STATUS_OK)
        return tfm_error_set(err, writer->kept.status, "%s", writer->kept.text);
    status = put_file(writer, &(struct sink){NULL, &memory, err});
    if (status != TFM_STATUS_OK) {
        free(memory.data);
        return status;
    }
    *data = memory.data;
    *size = memory.size;
    return TFM_STATUS_OK;
}
