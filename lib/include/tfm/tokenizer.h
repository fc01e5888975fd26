/* SPDX-License-Identifier: MIT
 * Byte-level BPE (Sennrich et al., arXiv:1508.07909; GPT-2's byte alphabet) from a GGUF file's
 * tokenizer.ggml.* keys. Immutable after creation, so thread-safe. */
#ifndef TFM_TOKENIZER_H
#define TFM_TOKENIZER_H

#include <tfm/dataset.h>
#include <tfm/gguf.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tfm_tokenizer;

/* FORMAT: keys missing or contradicting; UNSUPPORTED: model or pre-tokenizer that is not known (the
 * text names it and those that are); NOMEM. The gguf may be closed afterwards. */
TFM_API enum tfm_status tfm_tokenizer_create(const struct tfm_gguf *gguf,
                                             struct tfm_tokenizer **tokenizer,
                                             struct tfm_error *err);
/* From a file: a model, or a tokenizer alone. IO, and as above. */
TFM_API enum tfm_status tfm_tokenizer_open(const char *path, struct tfm_tokenizer **tokenizer,
                                           struct tfm_error *err);
/* Writes the tokenizer of a file or folder, as tfm_tokenizer_open takes it, into a GGUF file that has nothing else. */
TFM_API enum tfm_status tfm_tokenizer_copy(const char *from, const char *to, struct tfm_error *err);
TFM_API void tfm_tokenizer_destroy(struct tfm_tokenizer *tokenizer); /* NULL is fine */

TFM_API size_t tfm_tokenizer_vocab(const struct tfm_tokenizer *tokenizer);
/* -1 = none */
TFM_API int32_t tfm_tokenizer_bos(const struct tfm_tokenizer *tokenizer);
TFM_API int32_t tfm_tokenizer_eos(const struct tfm_tokenizer *tokenizer);
/* 1 if generation ends at this token (eos, eot, eom). */
TFM_API int tfm_tokenizer_is_end(const struct tfm_tokenizer *tokenizer, int32_t id);
/* 1 if it is a control token (its text is not printed). */
TFM_API int tfm_tokenizer_is_control(const struct tfm_tokenizer *tokenizer, int32_t id);
/* 1 if the file asks for BOS in front. */
TFM_API int tfm_tokenizer_add_bos(const struct tfm_tokenizer *tokenizer);

enum {
    TFM_TOKENIZE_SPECIAL = 1, /* control tokens written out in the text become their ids
                                 (user-defined tokens always do) */
    TFM_TOKENIZE_BOS = 2,     /* puts BOS in front if the file asks for it and it is not there */
};

/* A number that differs between tokenizers that give other ids: FNV-1a (64 bits) over the pieces and kinds of all tokens, the
 * merges and the way of cutting words. The same on every machine. */
TFM_API uint64_t tfm_tokenizer_checksum(const struct tfm_tokenizer *tokenizer);

/* Appends a whole text to a token file: bos if there is one (and it is not eos), the ids, eos if there is one. Control tokens
 * written out in the text are text. go_on (NULL = nobody) is called now and then with the bytes that are done, of all; once
 * it returns 0 nothing is appended: CANCELLED. Others as tfm_tokenizer_encode and tfm_dataset_writer_add. */
TFM_API enum tfm_status
tfm_tokenizer_add_text(const struct tfm_tokenizer *tokenizer, struct tfm_dataset_writer *writer,
                       const char *text, size_t size,
                       int (*go_on)(void *context, size_t done, size_t size), void *context,
                       struct tfm_error *err);

/* Encodes `size` bytes of UTF-8 (NUL bytes are bytes like others). *ids is allocated with malloc: free()
 * it. FORMAT: invalid UTF-8 (the text names the byte offset); UNSUPPORTED: a byte for which the vocabulary
 * has no token (named with its offset; SmolLM2 lacks 21 control and never-used bytes); INVALID_ARGUMENT:
 * size above INT32_MAX; NOMEM. */
TFM_API enum tfm_status tfm_tokenizer_encode(const struct tfm_tokenizer *tokenizer,
                                             const char *text, size_t size, unsigned flags,
                                             int32_t **ids, size_t *n, struct tfm_error *err);

/* The bytes of one token (a piece of text; may be part of a character). OUT_OF_RANGE.
 * Valid while the tokenizer lives. */
TFM_API enum tfm_status tfm_tokenizer_piece(const struct tfm_tokenizer *tokenizer, int32_t id,
                                            struct tfm_text *piece, struct tfm_error *err);

/* Streaming decode: holds back the bytes of an incomplete character until it is complete. */
struct tfm_stream {
    unsigned char held[4];
    size_t n_held;
};

/* Appends a piece; passes what is complete to `write`, whole characters only; bytes that can never become
 * a character pass through as they are. */
TFM_API void tfm_stream_put(struct tfm_stream *stream, const char *piece, size_t size,
                            void (*write)(void *context, const char *data, size_t size),
                            void *context);
/* Passes on what is still held back. */
TFM_API void tfm_stream_flush(struct tfm_stream *stream,
                              void (*write)(void *context, const char *data, size_t size),
                              void *context);

#ifdef __cplusplus
}
#endif
#endif
