/* SPDX-License-Identifier: MIT
 * Checkpoints of generations that differ, in a folder of the test's own, and files that are changed. */
#ifndef TESTS_TRAIN_CHECKPOINT_SCENE_H
#define TESTS_TRAIN_CHECKPOINT_SCENE_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include <tfm/checkpoint.h>

#include "lib/core/little_endian.h"
#include "lib/train/checkpoint_file.h"
#include "lib/train/xxh64.h"
#include "tests/folder.h"
#include "tests/core/runner.h"

static struct tfm_checkpoint *checkpoint;
static struct tfm_error err;

static const char *const left[] = {"last.ckpt", "previous.ckpt", "a.ckpt",
                                   ".tfm-1-0",  ".tfm-x-0",      ".tfm-1-0-old"};

static inline void leave_folder(void)
{
    tfm_checkpoint_close(checkpoint);
    folder_leave(left, sizeof left / sizeof *left);
}

#define OK(call) ck_assert_msg((call) == TFM_STATUS_OK, "%s", err.text)

/* What the byte at `at` of section `s` of generation `g` is. */
static inline unsigned char byte_of(int g, size_t s, size_t at)
{
    return (unsigned char)(at * 7 + s * 31 + (size_t)g * 101 + (at >> 8));
}

static const struct {
    const char *name;
    size_t size;
} parts[] = {{"config", 13}, {"counters", 64},         {"parameter:a.b", 1}, {"m:a.b", 63},
             {"empty", 0},   {"a name of 16 by.", 65}, {"v:a.b", 100000}};
enum { N_PARTS = sizeof parts / sizeof *parts };

/* All parts, in pieces of `piece` bytes (0 = whole). */
static inline void write_parts(const char *path, int g, size_t n_parts, size_t piece)
{
    struct tfm_checkpoint_writer *writer = NULL;

    OK(tfm_checkpoint_writer_create(path, &writer, &err));
    for (size_t s = 0; s < n_parts; s++) {
        unsigned char *data = malloc(parts[s].size + 1);
        ck_assert_ptr_nonnull(data);
        for (size_t i = 0; i < parts[s].size; i++)
            data[i] = byte_of(g, s, i);
        if (piece == 0) {
            OK(tfm_checkpoint_section(writer, parts[s].name, data, parts[s].size, &err));
        } else {
            OK(tfm_checkpoint_section_begin(writer, parts[s].name, parts[s].size, &err));
            for (size_t at = 0; at < parts[s].size; at += piece)
                OK(tfm_checkpoint_section_put(
                    writer, data + at, parts[s].size - at < piece ? parts[s].size - at : piece,
                    &err));
        }
        free(data);
    }
    OK(tfm_checkpoint_writer_finish(writer, &err));
    tfm_checkpoint_writer_destroy(writer);
}

static inline size_t read_file(const char *path, unsigned char *data, size_t room)
{
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    const size_t size = fread(data, 1, room, file);
    fclose(file);
    ck_assert_uint_lt(size, room);
    return size;
}

/* Cut to its length, not to nothing first: that would make the file system write it out each time. */
static inline void write_file(const char *path, const unsigned char *data, size_t size)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    ck_assert(fd >= 0 && pwrite(fd, data, size, 0) == (ssize_t)size &&
              ftruncate(fd, (off_t)size) == 0 && close(fd) == 0);
}

static unsigned char mutant[4096]; /* a file that is changed in memory */

/* Makes all checksums of mutant[0, size) right for what stands there now: table, trailer, head. */
static inline void seal(size_t size)
{
    unsigned char *trailer = mutant + size - 64;
    const uint64_t table = tfm__le_load(trailer, 8), table_size = tfm__le_load(trailer + 8, 8);

    if (table < size && table_size < size - table)
        tfm__le_store(trailer + 32, tfm__xxh64_of(mutant + table, (size_t)table_size), 8);
    tfm__le_store(trailer + 40, tfm__xxh64_of(trailer, 40), 8);
    tfm__le_store(mutant + 16, tfm__xxh64_of(mutant, 16), 8);
}

#endif
