/* SPDX-License-Identifier: MIT
 * Makes GGUF files for tests: honest ones, and ones that lie about anything. Out of memory ends the
 * test program. */
#ifndef TESTS_LLM_GGUF_BUILDER_H
#define TESTS_LLM_GGUF_BUILDER_H

#include <tfm/gguf.h>

/* Bytes that grow. Zero one to begin, free(data) to end. Numbers go in little-endian. */
struct gguf_bytes {
    unsigned char *data;
    size_t size, capacity;
};

void gguf_bytes_put(struct gguf_bytes *bytes, const void *data, size_t size); /* NULL = zeros */
void gguf_bytes_number(struct gguf_bytes *bytes, uint64_t value, size_t size);
/* u64 length, then the bytes. */
void gguf_bytes_string(struct gguf_bytes *bytes, const char *text, size_t size);
void gguf_bytes_align(struct gguf_bytes *bytes, size_t alignment);

struct gguf_builder;

struct gguf_builder *gguf_builder_create(void); /* version 3, no metadata, alignment 32 */
void gguf_builder_destroy(struct gguf_builder *builder);

/* ---- metadata, one pair a call ---- */
/* type = any integer type; a signed one takes the bits of `value`. */
void gguf_builder_uint(struct gguf_builder *builder, const char *key, enum tfm_gguf_type type,
                       uint64_t value);
void gguf_builder_float(struct gguf_builder *builder, const char *key, enum tfm_gguf_type type,
                        double value);
void gguf_builder_bool(struct gguf_builder *builder, const char *key, int value);
void gguf_builder_string(struct gguf_builder *builder, const char *key, const char *text);
/* The elements lie in memory as in the file (this machine is little-endian). */
void gguf_builder_array(struct gguf_builder *builder, const char *key, enum tfm_gguf_type type,
                        const void *elements, size_t count);
void gguf_builder_strings(struct gguf_builder *builder, const char *key, const char *const *strings,
                          size_t count);
void gguf_builder_texts(struct gguf_builder *builder, const char *key, const struct tfm_text *texts,
                        size_t count);
/* Writes general.alignment and keeps to it. */
void gguf_builder_alignment(struct gguf_builder *builder, uint32_t alignment);

/* ---- tensors ---- */
/* dims in the order of the file, contiguous first; type = ggml's number; data NULL = zeros. */
void gguf_builder_tensor(struct gguf_builder *builder, const char *name, uint32_t n_dims,
                         const uint64_t *dims, uint32_t type, const void *data, size_t bytes);

/* ---- lies ---- */
void gguf_builder_magic(struct gguf_builder *builder, const char *magic); /* 4 bytes */
void gguf_builder_version(struct gguf_builder *builder, uint32_t version);
void gguf_builder_pair_count(struct gguf_builder *builder, uint64_t count);
void gguf_builder_tensor_count(struct gguf_builder *builder, uint64_t count);
/* The bytes stand for one metadata pair. */
void gguf_builder_raw_pair(struct gguf_builder *builder, const void *bytes, size_t size);
/* A tensor whose table entry gives n_dims numbers of dims (n_dims may be 0 or above 4) and `offset`,
 * and which has `bytes` zeros of data. */
void gguf_builder_lie(struct gguf_builder *builder, const char *name, uint32_t n_dims,
                      const uint64_t *dims, uint32_t type, uint64_t offset, size_t bytes);

/* ---- results ---- */
/* The file: free() it. The builder can go on. */
unsigned char *gguf_builder_finish(const struct gguf_builder *builder, size_t *size);
/* Writes it to a new file. Returns 1 if that fails. */
int gguf_builder_write(const struct gguf_builder *builder, const char *path);

#endif
