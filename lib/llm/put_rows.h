/* SPDX-License-Identifier: MIT
 * The values of a tensor on their way into a file: rows in another order, values of another type, some at a time. */
#ifndef TFM__LLM_PUT_ROWS_H
#define TFM__LLM_PUT_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include <tfm/dtype.h>

struct tfm__put_rows {
    const char *name; /* of the tensor, for errors */
    enum tfm_dtype to, from;
    const void *data; /* [rows, row] */
    size_t rows, row;
    int64_t pair_rows; /* rope_rows.h */
};

/* Gives everything to `put`, in pieces; ends with its first failure, or NOMEM. */
enum tfm_status tfm__put_rows(const struct tfm__put_rows *rows,
                              enum tfm_status (*put)(void *context, const void *data, size_t size),
                              void *context, struct tfm_error *err);

#endif
