/* SPDX-License-Identifier: MIT
 * safetensors files (huggingface/safetensors: README.md): u64 length of a header, a JSON header, the bytes of the
 * tensors. The file is mapped read-only; every number of the header is checked against the file before use.
 * Immutable after open, so thread-safe. */
#ifndef TFM_SAFETENSORS_H
#define TFM_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include <tfm/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tfm_safetensors;

enum { TFM_SAFETENSORS_RANK = 8 };

struct tfm_safetensor {
    const char *name;
    enum tfm_dtype dtype;  /* meaningful if known */
    int known;             /* 0: a type that TFM does not read (type_name tells which) */
    const char *type_name; /* "BF16" */
    int32_t rank;          /* 0 = one value */
    int64_t shape[TFM_SAFETENSORS_RANK]; /* outermost first */
    const void *data;                    /* inside the mapping, maybe unaligned */
    size_t bytes;
};

/* Maps and checks a file. IO: cannot be opened or read; FORMAT: truncated or malformed: a header length beyond the
 * file or above 100 MB, no JSON, a key twice, a tensor whose range is not that of its shape and type, ranges that
 * overlap, leave a hole or do not end with the file (the text names file and tensor); NOMEM. */
TFM_API enum tfm_status tfm_safetensors_open(const char *path, struct tfm_safetensors **file,
                                             struct tfm_error *err);
/* The same over memory that outlives it. `name` stands in error texts. */
TFM_API enum tfm_status tfm_safetensors_open_memory(const void *data, size_t size, const char *name,
                                                    struct tfm_safetensors **file,
                                                    struct tfm_error *err);
TFM_API void tfm_safetensors_close(struct tfm_safetensors *file); /* NULL is fine */

TFM_API const char *tfm_safetensors_path(const struct tfm_safetensors *file);
TFM_API size_t tfm_safetensors_size(const struct tfm_safetensors *file); /* bytes of the file */
TFM_API size_t tfm_safetensors_count(const struct tfm_safetensors *file);
/* In the order of their data; NULL past the last. */
TFM_API const struct tfm_safetensor *tfm_safetensors_at(const struct tfm_safetensors *file,
                                                        size_t index);
/* By name; NULL when there is none. */
TFM_API const struct tfm_safetensor *tfm_safetensors_find(const struct tfm_safetensors *file,
                                                          const char *name);
/* A text of "__metadata__", NULL when there is none of that key. */
TFM_API const char *tfm_safetensors_metadata(const struct tfm_safetensors *file, const char *key);
/* As tfm_gguf_drop. */
TFM_API void tfm_safetensors_drop(const struct tfm_safetensors *file, const void *data,
                                  size_t bytes);

/* ---- writing ---- */

/* A tensor to be written. The memory outlives the call; it may be unaligned. */
struct tfm_safetensors_source {
    const char *name;
    enum tfm_dtype dtype; /* in the file: F32, F16, BF16, F64 or I32 */
    int32_t rank;
    const int64_t *shape;
    enum tfm_dtype from; /* in memory; any float or block type when dtype is F32, F16 or BF16 */
    const void *data;
    int64_t
        pair_rows; /* as in struct tfm_gguf_source: negative writes halves from adjacent pairs */
};

/* Writes a file: tensors in the order of their names, the widest types first, so that each is aligned to its type; data
 * begin at a multiple of 8 bytes; metadata {"format": "pt"}. The file is old or new, never half, as with
 * tfm_gguf_writer_save. INVALID_ARGUMENT: a name twice, empty, or no UTF-8; DTYPE: a type that the format has not;
 * SHAPE; IO; NOMEM. */
TFM_API enum tfm_status tfm_safetensors_save(const char *path,
                                             const struct tfm_safetensors_source *sources, size_t n,
                                             struct tfm_error *err);

#ifdef __cplusplus
}
#endif
#endif
