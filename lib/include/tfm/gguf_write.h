/* SPDX-License-Identifier: MIT
 * Writes GGUF v3 files (ggml: docs/gguf.md): metadata in the order of the calls, then tensors, each aligned to
 * 32 bytes. A file is old or new, never half: a temporary one beside it, fsync, rename, fsync of the folder. */
#ifndef TFM_GGUF_WRITE_H
#define TFM_GGUF_WRITE_H

#include <tfm/gguf.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tfm_gguf_writer; /* one thread at a time */

/* NOMEM. */
TFM_API enum tfm_status tfm_gguf_writer_create(struct tfm_gguf_writer **writer,
                                               struct tfm_error *err);
TFM_API void tfm_gguf_writer_destroy(struct tfm_gguf_writer *writer); /* NULL is fine */

/* Metadata. Keys and values are copied. What goes wrong (a key twice, out of memory, a value that does not
 * fit its type) is kept, the first of it, and told by tfm_gguf_writer_save and _bytes. `type` of an integer is
 * any of U8..I32, U64, I64. */
TFM_API void tfm_gguf_writer_uint(struct tfm_gguf_writer *writer, const char *key,
                                  enum tfm_gguf_type type, uint64_t value);
TFM_API void tfm_gguf_writer_float(struct tfm_gguf_writer *writer, const char *key,
                                   float value); /* F32 */
TFM_API void tfm_gguf_writer_bool(struct tfm_gguf_writer *writer, const char *key, int value);
TFM_API void tfm_gguf_writer_text(struct tfm_gguf_writer *writer, const char *key, const char *text,
                                  size_t size);
TFM_API void tfm_gguf_writer_texts(struct tfm_gguf_writer *writer, const char *key,
                                   const struct tfm_text *texts, size_t count);
TFM_API void tfm_gguf_writer_ints(struct tfm_gguf_writer *writer, const char *key,
                                  const int32_t *values, size_t count); /* array of I32 */
/* Every pair of an opened file whose key begins with `prefix`, as it stands there ("tokenizer." copies a
 * tokenizer), but general.alignment, file_type and quantization_version, which tell how that file is stored. */
TFM_API void tfm_gguf_writer_copy(struct tfm_gguf_writer *writer, const struct tfm_gguf *gguf,
                                  const char *prefix);

/* Where the values of a tensor come from. The memory outlives the writing; it may be unaligned. */
struct tfm_gguf_source {
    enum tfm_dtype dtype;
    const void *data;
    /* 0, or the rows of a head whose rotary pairs are its halves (Hugging Face) and which are written as
     * adjacent pairs (GGUF's llama): of d rows, row i goes to 2 i, row d/2 + i to 2 i + 1. Negative: the other way
     * round, for heads of -pair_rows rows. */
    int64_t pair_rows;
};

/* A tensor of a float or block dtype, shape[rank] outermost first. Values of another dtype than the source's
 * are rounded once, by tfm_dtype_from_f32. Kept for save and bytes, as above: SHAPE (rank, extents, a row
 * that is no whole number of blocks), DTYPE (a type that GGUF has no number for), and a name that is there
 * twice, empty or longer than 63 bytes. */
TFM_API void tfm_gguf_writer_tensor(struct tfm_gguf_writer *writer, const char *name,
                                    enum tfm_dtype dtype, int32_t rank, const int64_t *shape,
                                    const struct tfm_gguf_source *source);

/* Writes the file. IO: cannot be written (nothing new is left behind), or what was kept. */
TFM_API enum tfm_status tfm_gguf_writer_save(struct tfm_gguf_writer *writer, const char *path,
                                             struct tfm_error *err);
/* The same into memory: free() it. NOMEM, or what was kept. */
TFM_API enum tfm_status tfm_gguf_writer_bytes(struct tfm_gguf_writer *writer, void **data,
                                              size_t *size, struct tfm_error *err);

#ifdef __cplusplus
}
#endif
#endif
