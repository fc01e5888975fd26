/* SPDX-License-Identifier: MIT
 * Writes safetensors files. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/safetensors.h>

#include "lib/core/checked.h"
#include "lib/core/save.h"
#include "lib/llm/put_rows.h"
#include "lib/llm/safetensors_types.h"

/* A tensor on its way: what the caller gave, and what was worked out. */
struct entry {
    const struct tfm_safetensors_source *source;
    const char *type;
    size_t width, bytes, rows, row;
};

static int order(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->width != y->width)
        return x->width < y->width ? 1 : -1;
    return strcmp(x->source->name, y->source->name);
}

static enum tfm_status check(struct entry *entry, struct tfm_error *err)
{
    const struct tfm_safetensors_source *s = entry->source;
    const struct tfm_dtype_info *from = tfm_dtype_info(s->from);
    const int64_t heads = s->pair_rows < 0 ? -s->pair_rows : s->pair_rows;

    for (size_t i = 0; i < TFM__SAFETENSORS_TYPES; i++)
        if (tfm__safetensors_types[i].dtype == (int)s->dtype) {
            entry->type = tfm__safetensors_types[i].name;
            entry->width = tfm__safetensors_types[i].bytes;
        }
    if (!s->name || !*s->name || strcmp(s->name, "__metadata__") == 0)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT, "a tensor without a name");
    if (!entry->type)
        return tfm_error_set(err, TFM_STATUS_DTYPE, "tensor \"%.80s\": safetensors have no type %s",
                             s->name, tfm_dtype_name(s->dtype));
    if (s->rank < 0 || s->rank > TFM_SAFETENSORS_RANK)
        return tfm_error_set(err, TFM_STATUS_SHAPE, "tensor \"%.80s\": rank %d", s->name, s->rank);
    entry->bytes = entry->width;
    for (int32_t i = 0; i < s->rank; i++)
        if (s->shape[i] < 0 || tfm__mul_size(entry->bytes, (size_t)s->shape[i], &entry->bytes) ||
            entry->bytes > INT64_MAX)
            return tfm_error_set(err, TFM_STATUS_SHAPE, "tensor \"%.80s\": extent %d is %lld",
                                 s->name, i, (long long)s->shape[i]);
    entry->rows = s->rank == 2 || (s->rank == 1 && heads != 0) ? (size_t)s->shape[0] : 1;
    entry->row = entry->rows ? entry->bytes / entry->width / entry->rows : 0;
    if (s->from != s->dtype &&
        (!from || from->dtype_class == TFM_DTYPE_INT || s->dtype == TFM_DTYPE_I32 ||
         s->dtype == TFM_DTYPE_F64 || entry->row % from->block != 0))
        return tfm_error_set(err, TFM_STATUS_DTYPE, "tensor \"%.80s\": %s cannot be made of %s",
                             s->name, tfm_dtype_name(s->dtype), tfm_dtype_name(s->from));
    if (heads != 0 && (s->rank < 1 || s->rank > 2 || heads % 2 != 0 || s->shape[0] % heads != 0))
        return tfm_error_set(err, TFM_STATUS_SHAPE, "tensor \"%.80s\": no heads of %lld rows",
                             s->name, (long long)heads);
    return TFM_STATUS_OK;
}

/* The header, padded with blanks so that the data begin at a multiple of 8: a malloc'ed text, NULL when out of
 * memory or a name is no UTF-8. */
static char *make_header(const struct entry *entries, size_t n, size_t *size)
{
    json_t *header = json_object();
    size_t at = 0;
    int failed =
        !header || json_object_set_new(header, "__metadata__", json_pack("{ss}", "format", "pt"));

    for (size_t i = 0; i < n && !failed; i++) {
        const struct tfm_safetensors_source *s = entries[i].source;
        json_t *shape = json_array();
        for (int32_t k = 0; k < s->rank; k++)
            failed |= json_array_append_new(shape, json_integer(s->shape[k])) != 0;
        json_t *entry =
            json_pack("{ss, so, s[II]}", "dtype", entries[i].type, "shape", shape, "data_offsets",
                      (json_int_t)at, (json_int_t)(at + entries[i].bytes));
        failed |= json_object_set_new(header, s->name, entry) != 0;
        at += entries[i].bytes;
    }
    char *text = failed ? NULL : json_dumps(header, JSON_COMPACT);
    json_decref(header);
    if (!text)
        return NULL;
    *size = strlen(text);
    const size_t padded = (*size + 7) / 8 * 8;
    char *grown = realloc(text, padded + 1);
    if (!grown) {
        free(text);
        return NULL;
    }
    memset(grown + *size, ' ', padded - *size);
    *size = padded;
    return grown;
}

struct sink {
    struct tfm__save *save;
    struct tfm_error *err;
};

static enum tfm_status put_piece(void *context, const void *data, size_t size)
{
    const struct sink *sink = context;
    return tfm__save_put(sink->save, data, size, sink->err);
}

static enum tfm_status put_data(struct tfm__save *save, const struct entry *entry,
                                struct tfm_error *err)
{
    const struct tfm__put_rows rows = {
        .name = entry->source->name,
        .to = entry->source->dtype,
        .from = entry->source->from,
        .data = entry->source->data,
        .rows = entry->rows,
        .row = entry->row,
        .pair_rows = entry->source->pair_rows,
    };

    if (entry->bytes == 0)
        return TFM_STATUS_OK;
    return tfm__put_rows(&rows, put_piece, &(struct sink){save, err}, err);
}

static enum tfm_status write_file(const char *path, const struct entry *entries, size_t n,
                                  struct tfm_error *err)
{
    struct tfm__save save = {.fd = -1};
    unsigned char length[8];
    size_t size = 0;
    char *header = make_header(entries, n, &size);
    enum tfm_status status;

    if (!header)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "%s: no header can be made: out of memory, or a name is no UTF-8",
                             path);
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)size >> (8 * i));
    status = tfm__save_begin(&save, path, err);
    if (status == TFM_STATUS_OK)
        status = tfm__save_put(&save, length, sizeof length, err);
    if (status == TFM_STATUS_OK)
        status = tfm__save_put(&save, header, size, err);
    for (size_t i = 0; i < n && status == TFM_STATUS_OK; i++)
        status = put_data(&save, &entries[i], err);
    if (status == TFM_STATUS_OK)
        status = tfm__save_finish(&save, err);
    tfm__save_abandon(&save);
    free(header);
    return status;
}

enum tfm_status tfm_safetensors_save(const char *path, const struct tfm_safetensors_source *sources,
                                     size_t n, struct tfm_error *err)
{
    struct entry *entries = calloc(n + 1, sizeof *entries);
    size_t total = 0;
    enum tfm_status status = TFM_STATUS_OK;

    tfm_error_clear(err);
    if (!entries)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", path);
    for (size_t i = 0; i < n && status == TFM_STATUS_OK; i++) {
        entries[i].source = &sources[i];
        status = check(&entries[i], err);
        if (status == TFM_STATUS_OK && tfm__add_size(total, entries[i].bytes, &total))
            status = tfm_error_set(err, TFM_STATUS_SHAPE, "the sizes of the tensors overflow");
    }
    if (status == TFM_STATUS_OK) {
        qsort(entries, n, sizeof *entries, order);
        for (size_t i = 1; i < n && status == TFM_STATUS_OK; i++)
            for (size_t k = 0; k < i && status == TFM_STATUS_OK; k++)
                if (strcmp(entries[i].source->name, entries[k].source->name) == 0)
                    status =
                        tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                                      "tensor \"%.80s\" is there twice", entries[i].source->name);
    }
    if (status == TFM_STATUS_OK)
        status = write_file(path, entries, n, err);
    else
        tfm_error_prefix(err, "%s", path);
    free(entries);
    return status;
}
