/* SPDX-License-Identifier: MIT
 * Token files: the ids of a corpus, mapped read-only, and the order in which training sees them.
 * The file (little-endian): "TFMTOKEN", u32 version 1, u32 bytes of an id (2 or 4), u64 vocabulary, u64 checksum of the
 * tokenizer, u64 number of ids, u64 FNV-1a of the bytes of the ids, then the ids. No time stamp, no path: the same
 * texts give the same file. */
#ifndef TFM_DATASET_H
#define TFM_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include <tfm/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- writing ---- */

struct tfm_dataset_writer; /* one thread at a time */
struct tfm_dataset;        /* immutable after open, so thread-safe */

/* Begins a file beside `path`. Ids take 2 bytes if vocab <= 65536. INVALID_ARGUMENT: vocab 0 or above 2^31, or `path` is
 * a pipe or device; IO; NOMEM. */
TFM_API enum tfm_status tfm_dataset_writer_create(const char *path, uint64_t vocab,
                                                  uint64_t tokenizer,
                                                  struct tfm_dataset_writer **writer,
                                                  struct tfm_error *err);
/* Appends n ids. OUT_OF_RANGE: an id that is not in [0, vocab): nothing of this call is appended; IO. */
TFM_API enum tfm_status tfm_dataset_writer_add(struct tfm_dataset_writer *writer,
                                               const int32_t *ids, size_t n, struct tfm_error *err);
/* 1 if finish would write what is in `dataset`: the same ids of the same tokenizer. */
TFM_API int tfm_dataset_writer_same(const struct tfm_dataset_writer *writer,
                                    const struct tfm_dataset *dataset);
/* Makes it the file: fsync, rename, fsync of the folder. IO: the old file is as it was. Destroy the writer
 * afterwards. */
TFM_API enum tfm_status tfm_dataset_writer_finish(struct tfm_dataset_writer *writer,
                                                  struct tfm_error *err);
/* Without finish nothing is left behind. NULL is fine. */
TFM_API void tfm_dataset_writer_destroy(struct tfm_dataset_writer *writer);

/* ---- reading ---- */

/* Maps the file and reads it once. IO; FORMAT: no token file, another version, truncated or longer than it says,
 * an id outside of the vocabulary, or bytes that do not give the checksum; NOMEM. */
TFM_API enum tfm_status tfm_dataset_open(const char *path, struct tfm_dataset **dataset,
                                         struct tfm_error *err);
TFM_API void tfm_dataset_close(struct tfm_dataset *dataset); /* NULL is fine */

TFM_API size_t tfm_dataset_count(const struct tfm_dataset *dataset); /* ids */
TFM_API uint64_t tfm_dataset_vocab(const struct tfm_dataset *dataset);
/* FNV-1a of the bytes of the ids: it tells files apart whose texts differ. */
TFM_API uint64_t tfm_dataset_checksum(const struct tfm_dataset *dataset);
TFM_API uint64_t tfm_dataset_tokenizer(const struct tfm_dataset *dataset); /* checksum */
/* INVALID_ARGUMENT unless vocabulary and tokenizer are these; the text says both and what to do. */
TFM_API enum tfm_status tfm_dataset_expect(const struct tfm_dataset *dataset, uint64_t vocab,
                                           uint64_t tokenizer, struct tfm_error *err);
/* ids[0, n) = those from number `first` on. OUT_OF_RANGE. */
TFM_API enum tfm_status tfm_dataset_read(const struct tfm_dataset *dataset, size_t first, size_t n,
                                         int32_t *ids, struct tfm_error *err);

/* ---- windows ---- */

/* The ids in windows of `length` inputs, one behind the other; the targets of a window are its inputs moved by one, so that
 * every id but the first is a target once. The last `held` windows are for validation and never trained on; what
 * is left at the end is not used. */
struct tfm_windows {
    size_t length;
    uint64_t train, held; /* windows */
    uint64_t seed;        /* of the order */
};

/* Splits a file: a share in [0, 1) of the windows, at least one if it is above 0, is held out. OUT_OF_RANGE: fewer than
 * one window to train on, or none to hold out (the text says how many ids there are and how many are needed);
 * INVALID_ARGUMENT: length 0, a share that is none. */
TFM_API enum tfm_status tfm_windows_split(const struct tfm_dataset *dataset, size_t length,
                                          double held_out, uint64_t seed,
                                          struct tfm_windows *windows, struct tfm_error *err);

/* The window at a place of the endless training order: every `train` places, an epoch, hold each window once, in an order of
 * its own that depends on seed and epoch only. So one number is the whole position: save it, and training goes on
 * as if it had never stopped. */
TFM_API uint64_t tfm_windows_at(const struct tfm_windows *windows, uint64_t place);

/* inputs and targets [rows, length] of `rows` places from *place on, which is moved on by `rows`. */
TFM_API enum tfm_status tfm_windows_train(const struct tfm_windows *windows,
                                          const struct tfm_dataset *dataset, uint64_t *place,
                                          size_t rows, int32_t *inputs, int32_t *targets,
                                          struct tfm_error *err);
/* Held-out windows first, first + 1, ... OUT_OF_RANGE. */
TFM_API enum tfm_status tfm_windows_held(const struct tfm_windows *windows,
                                         const struct tfm_dataset *dataset, uint64_t first,
                                         size_t rows, int32_t *inputs, int32_t *targets,
                                         struct tfm_error *err);

#ifdef __cplusplus
}
#endif
#endif
