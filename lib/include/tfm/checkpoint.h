/* SPDX-License-Identifier: MIT
 * Checkpoints: a file of named sections that is whole or not there. Written beside, checked as a whole when it is opened,
 * without time stamp, path or host name: the same sections in the same order give the same bytes. What the sections mean
 * is the caller's; docs/checkpoints.md has the format byte by byte and those of `tfm train`.
 *
 * A folder holds the last two. At every moment, also when the process is killed, at least one of them is whole. */
#ifndef TFM_CHECKPOINT_H
#define TFM_CHECKPOINT_H

#include <stddef.h>
#include <stdint.h>

#include <tfm/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names in a folder: the newest one, and the one before it. */
#define TFM_CHECKPOINT_LAST     "last.ckpt"
#define TFM_CHECKPOINT_PREVIOUS "previous.ckpt"

enum {
    TFM_CHECKPOINT_ALIGNMENT = 64, /* of the data of a section, in the file and in memory */
    TFM_CHECKPOINT_NAME_MAX = 255, /* bytes of a name of a section */
};

/* ---- writing ---- */

struct tfm_checkpoint_writer; /* one thread at a time */

/* Begins a file beside `path`, in the same folder; temporary files that killed processes left there are taken away.
 * INVALID_ARGUMENT: path names the previous one, or something that is no regular file; IO; NOMEM. */
TFM_API enum tfm_status tfm_checkpoint_writer_create(const char *path,
                                                     struct tfm_checkpoint_writer **writer,
                                                     struct tfm_error *err);
/* A whole section. data may be NULL if size is 0. INVALID_ARGUMENT: a name that is empty, too long or there already, or a
 * section before it that is not complete; IO (disk full, ...): the writer is of no use any more, the files are as they
 * were; NOMEM. */
TFM_API enum tfm_status tfm_checkpoint_section(struct tfm_checkpoint_writer *writer,
                                               const char *name, const void *data, size_t size,
                                               struct tfm_error *err);
/* The same in pieces: begin says how many bytes there will be, then put as often as wanted.
 * INVALID_ARGUMENT also: more bytes than that. */
TFM_API enum tfm_status tfm_checkpoint_section_begin(struct tfm_checkpoint_writer *writer,
                                                     const char *name, size_t size,
                                                     struct tfm_error *err);
TFM_API enum tfm_status tfm_checkpoint_section_put(struct tfm_checkpoint_writer *writer,
                                                   const void *data, size_t size,
                                                   struct tfm_error *err);
/* Makes it the file: table and trailer, fsync, rename, fsync of the folder. A checkpoint that was at `path` is
 * previous.ckpt in that folder afterwards; if what was there is none (cut off, another format), it is replaced and
 * previous.ckpt is left alone. IO: what was there is still there. Destroy the writer afterwards. */
TFM_API enum tfm_status tfm_checkpoint_writer_finish(struct tfm_checkpoint_writer *writer,
                                                     struct tfm_error *err);
/* Without finish nothing is left behind. NULL is fine. */
TFM_API void tfm_checkpoint_writer_destroy(struct tfm_checkpoint_writer *writer);

/* ---- reading ---- */

struct tfm_checkpoint; /* immutable after open, so thread-safe */

/* Maps the file and checks every byte of it. IO; FORMAT: no checkpoint, cut off, or damaged (the text names the section);
 * UNSUPPORTED: whole, but of another version of the format; NOMEM. */
TFM_API enum tfm_status tfm_checkpoint_open(const char *path, struct tfm_checkpoint **checkpoint,
                                            struct tfm_error *err);
/* Opens last.ckpt of a folder, or previous.ckpt if last.ckpt is missing or damaged. *passed_over, which must not be NULL, is
 * empty (status OK) in the first case and says in the second what is wrong with last.ckpt and which file was taken:
 * tell the user. NOT_FOUND: the folder has neither, or is not there; else as open (with both damaged, both are named). */
TFM_API enum tfm_status tfm_checkpoint_open_latest(const char *folder,
                                                   struct tfm_checkpoint **checkpoint,
                                                   struct tfm_error *passed_over,
                                                   struct tfm_error *err);
TFM_API void tfm_checkpoint_close(struct tfm_checkpoint *checkpoint); /* NULL is fine */

/* As it was opened: for texts. */
TFM_API const char *tfm_checkpoint_path(const struct tfm_checkpoint *checkpoint);
TFM_API size_t tfm_checkpoint_count(const struct tfm_checkpoint *checkpoint); /* sections */
/* data[0, size) of a section, aligned to 64 bytes, valid until close. NOT_FOUND. */
TFM_API enum tfm_status tfm_checkpoint_find(const struct tfm_checkpoint *checkpoint,
                                            const char *name, const void **data, size_t *size,
                                            struct tfm_error *err);
/* Section i in the order of the file. Each out-pointer may be NULL. OUT_OF_RANGE. */
TFM_API enum tfm_status tfm_checkpoint_at(const struct tfm_checkpoint *checkpoint, size_t i,
                                          const char **name, const void **data, size_t *size,
                                          struct tfm_error *err);
/* data[0, size) of a section was read and is not needed for now: its memory may go. */
TFM_API void tfm_checkpoint_drop(const struct tfm_checkpoint *checkpoint, const void *data,
                                 size_t size);

#ifdef __cplusplus
}
#endif
#endif
