/* SPDX-License-Identifier: MIT
 * Converts tensors while they are written. */
#include <stdlib.h>

#include "lib/llm/put_rows.h"
#include "lib/llm/rope_rows.h"

enum { CHUNK_VALUES = 1 << 16 };

static enum tfm_status put_converted(const struct tfm__put_rows *r,
                                     enum tfm_status (*put)(void *, const void *, size_t),
                                     void *context, struct tfm_error *err)
{
    const struct tfm_dtype_info *to = tfm_dtype_info(r->to), *from = tfm_dtype_info(r->from);
    const size_t block = to->block > from->block ? to->block : from->block;
    const size_t piece = r->row < CHUNK_VALUES ? r->row : CHUNK_VALUES / block * block;
    float *values = malloc(piece * sizeof *values);
    unsigned char *out = malloc(piece / to->block * to->bytes);
    enum tfm_status status = TFM_STATUS_OK;

    if (!values || !out)
        status = tfm_error_set(err, TFM_STATUS_NOMEM, "out of memory for tensor \"%s\"", r->name);
    for (size_t i = 0; i < r->rows && status == TFM_STATUS_OK; i++) {
        const size_t first = tfm__rope_row(r->pair_rows, i) * r->row;
        for (size_t at = 0; at < r->row && status == TFM_STATUS_OK; at += piece) {
            const size_t n = r->row - at < piece ? r->row - at : piece;
            tfm_dtype_to_f32(r->from, r->data, first + at, n, values);
            tfm_dtype_from_f32(r->to, values, out, 0, n);
            status = put(context, out, n / to->block * to->bytes);
        }
    }
    free(values);
    free(out);
    return status;
}

enum tfm_status tfm__put_rows(const struct tfm__put_rows *rows,
                              enum tfm_status (*put)(void *context, const void *data, size_t size),
                              void *context, struct tfm_error *err)
{
    const struct tfm_dtype_info *info = tfm_dtype_info(rows->to);
    const size_t bytes = rows->row / info->block * info->bytes;
    const unsigned char *data = rows->data;
    enum tfm_status status = TFM_STATUS_OK;

    if (rows->to != rows->from)
        return put_converted(rows, put, context, err);
    if (rows->pair_rows == 0)
        return put(context, data, rows->rows * bytes);
    for (size_t i = 0; i < rows->rows && status == TFM_STATUS_OK; i++)
        status = put(context, data + tfm__rope_row(rows->pair_rows, i) * bytes, bytes);
    return status;
}
