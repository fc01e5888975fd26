/* SPDX-License-Identifier: MIT
 * GGUF v2/v3 reader (ggml: docs/gguf.md). The file is mapped read-only; every count, length and offset
 * is checked against the file before use. Immutable after open, so thread-safe. */
#ifndef TFM_GGUF_H
#define TFM_GGUF_H

#include <stddef.h>
#include <stdint.h>

#include <tfm/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tfm_gguf;

/* Value types of metadata, as numbered in the file. */
enum tfm_gguf_type {
    TFM_GGUF_U8,
    TFM_GGUF_I8,
    TFM_GGUF_U16,
    TFM_GGUF_I16,
    TFM_GGUF_U32,
    TFM_GGUF_I32,
    TFM_GGUF_F32,
    TFM_GGUF_BOOL,
    TFM_GGUF_STRING,
    TFM_GGUF_ARRAY,
    TFM_GGUF_U64,
    TFM_GGUF_I64,
    TFM_GGUF_F64,
};

/* A byte string inside the mapping: not NUL-terminated. */
struct tfm_text {
    const char *data;
    size_t size;
};

struct tfm_gguf_array {
    enum tfm_gguf_type type; /* of the elements; never ARRAY */
    size_t count;
    const void *elements; /* packed, maybe unaligned; for STRING use tfm_gguf_array_text */
};

struct tfm_gguf_tensor {
    struct tfm_text name;
    uint32_t file_type;    /* ggml's number */
    enum tfm_dtype dtype;  /* meaningful if known */
    int known;             /* 0: a type that TFM does not read (type_name tells which) */
    const char *type_name; /* "Q4_K" */
    int32_t rank;
    int64_t shape[4]; /* outermost first: reversed against the file */
    const void *data; /* inside the mapping */
    size_t bytes;
};

/* Maps and checks a file. IO: cannot be opened or read; FORMAT: not GGUF, truncated or malformed: the
 * text names file, field or tensor, and byte offset. */
TFM_API enum tfm_status tfm_gguf_open(const char *path, struct tfm_gguf **gguf,
                                      struct tfm_error *err);
/* The same over memory that outlives it (tests, fuzzing). `name` stands in error texts. */
TFM_API enum tfm_status tfm_gguf_open_memory(const void *data, size_t size, const char *name,
                                             struct tfm_gguf **gguf, struct tfm_error *err);
TFM_API void tfm_gguf_close(struct tfm_gguf *gguf); /* NULL is fine */

TFM_API const char *tfm_gguf_path(const struct tfm_gguf *gguf);
TFM_API size_t tfm_gguf_size(const struct tfm_gguf *gguf); /* bytes of the file */

TFM_API size_t tfm_gguf_tensor_count(const struct tfm_gguf *gguf);
TFM_API const struct tfm_gguf_tensor *tfm_gguf_tensor(const struct tfm_gguf *gguf, size_t index);
/* By name; NULL when there is none. */
TFM_API const struct tfm_gguf_tensor *tfm_gguf_find(const struct tfm_gguf *gguf, const char *name);

/* Typed metadata. NOT_FOUND: no such key; FORMAT: another type. Integers of any width are accepted when
 * the value fits; f32 and f64 both give a double. *value is untouched on failure. */
TFM_API enum tfm_status tfm_gguf_uint(const struct tfm_gguf *gguf, const char *key, uint64_t *value,
                                      struct tfm_error *err);
TFM_API enum tfm_status tfm_gguf_float(const struct tfm_gguf *gguf, const char *key, double *value,
                                       struct tfm_error *err);
TFM_API enum tfm_status tfm_gguf_bool(const struct tfm_gguf *gguf, const char *key, int *value,
                                      struct tfm_error *err);
TFM_API enum tfm_status tfm_gguf_string(const struct tfm_gguf *gguf, const char *key,
                                        struct tfm_text *value, struct tfm_error *err);
TFM_API enum tfm_status tfm_gguf_get_array(const struct tfm_gguf *gguf, const char *key,
                                           struct tfm_gguf_array *value, struct tfm_error *err);
/* Copies the strings of a STRING array into views[count]. FORMAT: not a string array. */
TFM_API enum tfm_status tfm_gguf_array_text(const struct tfm_gguf_array *array,
                                            struct tfm_text *views, struct tfm_error *err);
/* Element of an integer array. FORMAT: not integers; OUT_OF_RANGE. */
TFM_API enum tfm_status tfm_gguf_array_int(const struct tfm_gguf_array *array, size_t index,
                                           int64_t *value, struct tfm_error *err);
/* Element of a float array. FORMAT: not floats; OUT_OF_RANGE. */
TFM_API enum tfm_status tfm_gguf_array_float(const struct tfm_gguf_array *array, size_t index,
                                             double *value, struct tfm_error *err);

/* Tells the system that the pages of [data, data + bytes) are not needed for now (they come back from
 * the file when touched). Only whole pages inside the range. */
TFM_API void tfm_gguf_drop(const struct tfm_gguf *gguf, const void *data, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
