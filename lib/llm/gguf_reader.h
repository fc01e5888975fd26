/* SPDX-License-Identifier: MIT
 * A position in a GGUF file that only moves inside of it, and what the two halves of the parser share. */
#ifndef TFM__LLM_GGUF_READER_H
#define TFM__LLM_GGUF_READER_H

#include "lib/llm/gguf_internal.h"

/* Position in the file, and what is being read there, for error texts. */
struct tfm__reader {
    struct tfm_gguf *gguf;
    size_t at;
    const char *kind; /* "key" or "tensor"; NULL in the header */
    size_t index;
    struct tfm_text subject; /* name of the key or tensor, once known */
    struct tfm_error *err;
};

/* Records "FILE: key 'x', byte AT: ..." and returns FORMAT. */
enum tfm_status tfm__reader_fail(const struct tfm__reader *r, size_t at, const char *format, ...)
    TFM_PRINTF(3, 4);
enum tfm_status tfm__reader_no_memory(const struct tfm__reader *r);

/* Bytes behind the position. */
size_t tfm__reader_left(const struct tfm__reader *r);
/* The next bytes; FORMAT if there are not so many. `field` names them in the error. */
enum tfm_status tfm__reader_take(struct tfm__reader *r, size_t bytes, const char *field,
                                 const unsigned char **data);
/* An unsigned little-endian number of so many bytes. */
enum tfm_status tfm__reader_number(struct tfm__reader *r, size_t bytes, const char *field,
                                   uint64_t *value);
/* A string: u64 length, then the bytes, at most `limit`. */
enum tfm_status tfm__reader_text(struct tfm__reader *r, size_t limit, const char *field,
                                 struct tfm_text *text);

/* Makes room for one more element of a list. It grows with what was really read, never with what the
 * file promises. Returns 1 when out of memory. */
int tfm__reader_grow(void **list, size_t n, size_t *capacity, size_t element);

/* The tensor table, behind header and metadata. */
enum tfm_status tfm__gguf_parse_tensors(struct tfm__reader *r, uint64_t count);

#endif
