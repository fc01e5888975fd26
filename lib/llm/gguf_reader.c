/* SPDX-License-Identifier: MIT
 * Takes numbers and strings from a GGUF file, and says where it went wrong. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/core/checked.h"
#include "lib/llm/gguf_reader.h"
#include "lib/llm/text.h"

enum tfm_status tfm__reader_fail(const struct tfm__reader *r, size_t at, const char *format, ...)
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

enum tfm_status tfm__reader_no_memory(const struct tfm__reader *r)
{
    return tfm_error_set(r->err, TFM_STATUS_NOMEM, "%s: out of memory while reading its header",
                         r->gguf->name);
}

size_t tfm__reader_left(const struct tfm__reader *r)
{
    return r->gguf->size - r->at;
}

enum tfm_status tfm__reader_take(struct tfm__reader *r, size_t bytes, const char *field,
                                 const unsigned char **data)
{
    if (bytes > tfm__reader_left(r))
        return tfm__reader_fail(
            r, r->at,
            "%s needs %zu bytes, the file has %zu more: it is truncated or malformed, "
            "get it again",
            field, bytes, tfm__reader_left(r));
    *data = r->gguf->base + r->at;
    r->at += bytes;
    return TFM_STATUS_OK;
}

enum tfm_status tfm__reader_number(struct tfm__reader *r, size_t bytes, const char *field,
                                   uint64_t *value)
{
    const unsigned char *data = NULL;
    enum tfm_status status = tfm__reader_take(r, bytes, field, &data);
    if (status == TFM_STATUS_OK)
        *value = tfm__le_load(data, bytes);
    return status;
}

enum tfm_status tfm__reader_text(struct tfm__reader *r, size_t limit, const char *field,
                                 struct tfm_text *text)
{
    uint64_t size = 0;
    size_t at = r->at;
    const unsigned char *data = NULL;
    enum tfm_status status = tfm__reader_number(r, 8, field, &size);

    if (status != TFM_STATUS_OK)
        return status;
    if (size > tfm__reader_left(r))
        return tfm__reader_fail(
            r, at, "%s of %llu bytes, the file has %zu more: it is truncated or malformed", field,
            (unsigned long long)size, tfm__reader_left(r));
    if (size > limit)
        return tfm__reader_fail(r, at, "%s of %llu bytes is longer than %zu", field,
                                (unsigned long long)size, limit);
    status = tfm__reader_take(r, (size_t)size, field, &data);
    if (status != TFM_STATUS_OK)
        return status;
    text->data = (const char *)data;
    text->size = (size_t)size;
    return TFM_STATUS_OK;
}

int tfm__reader_grow(void **list, size_t n, size_t *capacity, size_t element)
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
