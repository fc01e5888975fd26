/* SPDX-License-Identifier: MIT
 * Writes checkpoints: sections as they come, then the table that says what they were, the trailer, and the change of
 * names, of which each step leaves a whole checkpoint behind. */
#include <stdlib.h>
#include <string.h>

#include "lib/core/checked.h"
#include "lib/core/little_endian.h"
#include "lib/core/save.h"
#include "lib/train/checkpoint_file.h"
#include "lib/train/xxh64.h"

enum { BLOCK = TFM__CHECKPOINT_BLOCK };

struct tfm_checkpoint_writer {
    struct tfm__save save;
    char *folder;
    uint64_t at;          /* bytes written */
    unsigned char *table; /* what will be written behind the sections */
    size_t table_size, table_room, count;
    /* the section that is being written: where its entry is in the table */
    size_t entry;
    uint64_t size, put;
    struct tfm__xxh64 sum;
};

/* Says so of an error of save.h, after which the old files are as they were. */
static enum tfm_status unchanged(const struct tfm_error *why, struct tfm_error *err)
{
    return tfm_error_set(err, why->status,
                         "%s; the checkpoint that was there is as it was: save again when the "
                         "cause is gone",
                         why->text);
}

static enum tfm_status put(struct tfm_checkpoint_writer *w, const void *data, size_t size,
                           struct tfm_error *err)
{
    struct tfm_error why = {0};

    w->at += size;
    return tfm__save_put(&w->save, data, size, &why) == TFM_STATUS_OK ? TFM_STATUS_OK
                                                                      : unchanged(&why, err);
}

static enum tfm_status fill_block(struct tfm_checkpoint_writer *w, struct tfm_error *err)
{
    static const unsigned char empty[BLOCK];

    return put(w, empty, (size_t)(-w->at % BLOCK), err);
}

/* Where to, without following a link: the name itself is what changes. */
static enum tfm_status find_place(struct tfm_checkpoint_writer *w, const char *path, mode_t *mode,
                                  struct tfm_error *err)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *in = slash == path ? "/" : ".";
    struct stat old;

    if (*base == '\0' || strcmp(base, TFM_CHECKPOINT_PREVIOUS) == 0)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "%s: a checkpoint cannot have this name, take one as "
                             "FOLDER/" TFM_CHECKPOINT_LAST,
                             path);
    w->folder = slash && slash != path ? strndup(path, (size_t)(slash - path)) : strdup(in);
    if (!w->folder)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", path);
    if (snprintf(w->save.name, sizeof w->save.name, "%s", path) >= (int)sizeof w->save.name ||
        snprintf(w->save.target, sizeof w->save.target, "%s%s", slash ? "" : "./", path) >=
            (int)sizeof w->save.target)
        return tfm_error_set(err, TFM_STATUS_IO, "%.60s...: the name is too long", path);
    if (lstat(path, &old) == 0) {
        if (!S_ISREG(old.st_mode) && !S_ISLNK(old.st_mode))
            return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                                 "%s: not a regular file: a checkpoint cannot take its place",
                                 path);
        *mode = S_ISREG(old.st_mode) ? old.st_mode & 0777 : 0;
    }
    return TFM_STATUS_OK;
}

enum tfm_status tfm_checkpoint_writer_create(const char *path,
                                             struct tfm_checkpoint_writer **writer,
                                             struct tfm_error *err)
{
    unsigned char head[BLOCK] = TFM__CHECKPOINT_MAGIC;
    enum tfm_status status;
    mode_t mode = 0;

    tfm_error_clear(err);
    struct tfm_checkpoint_writer *w = calloc(1, sizeof *w);
    if (!w)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", path);
    w->save.fd = -1;
    status = find_place(w, path, &mode, err);
    if (status == TFM_STATUS_OK) {
        tfm__checkpoint_clean(w->folder);
        const int error = tfm__save_start(&w->save, mode);
        if (error)
            status = tfm__save_fail(&w->save, error, err);
    }
    tfm__le_store(head + TFM__CHECKPOINT_AT_VERSION, TFM__CHECKPOINT_VERSION, 8);
    tfm__le_store(head + TFM__CHECKPOINT_AT_HEAD_SUM,
                  tfm__xxh64_of(head, TFM__CHECKPOINT_AT_HEAD_SUM), 8);
    if (status == TFM_STATUS_OK)
        status = put(w, head, sizeof head, err);
    if (status != TFM_STATUS_OK)
        tfm_checkpoint_writer_destroy(w);
    else
        *writer = w;
    return status;
}

/* Can this writer go on? The section before must have got all its bytes. */
static enum tfm_status ready(const struct tfm_checkpoint_writer *w, struct tfm_error *err)
{
    if (w->save.fd < 0)
        return tfm_error_set(err, TFM_STATUS_IO, "%s: an earlier write failed, begin it again",
                             w->save.name);
    if (w->put != w->size)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "%s: section \"%s\" has %llu of its %llu bytes: put the rest first",
                             w->save.name,
                             (const char *)w->table + w->entry + TFM__CHECKPOINT_AT_NAME,
                             (unsigned long long)w->put, (unsigned long long)w->size);
    return TFM_STATUS_OK;
}

static int is_there(const struct tfm_checkpoint_writer *w, const char *name)
{
    const unsigned char *entry = w->table;

    for (size_t i = 0; i < w->count; i++) {
        const size_t n = (size_t)tfm__le_load(entry + TFM__CHECKPOINT_AT_NAME_SIZE, 8);
        if (strcmp((const char *)entry + TFM__CHECKPOINT_AT_NAME, name) == 0)
            return 1;
        entry += TFM__CHECKPOINT_AT_NAME + (n / 8 + 1) * 8;
    }
    return 0;
}

/* Room for one more entry; 1 when out of memory. */
static int grow_table(struct tfm_checkpoint_writer *w, size_t more)
{
    size_t room = w->table_room;

    if (more <= room - w->table_size)
        return 0;
    if (tfm__mul_size(room, 2, &room) || tfm__add_size(room, more + 4096, &room))
        return 1;
    unsigned char *grown = realloc(w->table, room);
    if (!grown)
        return 1;
    w->table = grown;
    w->table_room = room;
    return 0;
}

enum tfm_status tfm_checkpoint_section_begin(struct tfm_checkpoint_writer *writer, const char *name,
                                             size_t size, struct tfm_error *err)
{
    struct tfm_checkpoint_writer *w = writer;
    const size_t n = strlen(name), room = TFM__CHECKPOINT_AT_NAME + (n / 8 + 1) * 8;
    enum tfm_status status;

    tfm_error_clear(err);
    status = ready(w, err);
    if (status != TFM_STATUS_OK)
        return status;
    if (n == 0 || n > TFM_CHECKPOINT_NAME_MAX)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "%s: a section's name of %zu bytes, must be 1 to %d", w->save.name, n,
                             TFM_CHECKPOINT_NAME_MAX);
    if (is_there(w, name))
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "%s: section \"%s\" is there already: give it another name",
                             w->save.name, name);
    if (grow_table(w, room))
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", w->save.name);
    status = fill_block(w, err);
    if (status != TFM_STATUS_OK)
        return status;
    w->entry = w->table_size;
    w->table_size += room;
    w->count++;
    w->size = size;
    w->put = 0;
    tfm__xxh64_init(&w->sum);
    unsigned char *entry = w->table + w->entry;
    memset(entry, 0, room);
    tfm__le_store(entry + TFM__CHECKPOINT_AT_OFFSET, w->at, 8);
    tfm__le_store(entry + TFM__CHECKPOINT_AT_SIZE, size, 8);
    tfm__le_store(entry + TFM__CHECKPOINT_AT_SUM, tfm__xxh64_result(&w->sum), 8);
    tfm__le_store(entry + TFM__CHECKPOINT_AT_NAME_SIZE, n, 8);
    memcpy(entry + TFM__CHECKPOINT_AT_NAME, name, n);
    return TFM_STATUS_OK;
}

enum tfm_status tfm_checkpoint_section_put(struct tfm_checkpoint_writer *writer, const void *data,
                                           size_t size, struct tfm_error *err)
{
    struct tfm_checkpoint_writer *w = writer;
    enum tfm_status status;

    tfm_error_clear(err);
    if (w->save.fd >= 0 && size > w->size - w->put)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "%s: %zu bytes more for a section that has %llu of its %llu",
                             w->save.name, size, (unsigned long long)w->put,
                             (unsigned long long)w->size);
    if (w->save.fd < 0)
        return ready(w, err);
    status = put(w, data, size, err);
    if (status != TFM_STATUS_OK)
        return status;
    tfm__xxh64_add(&w->sum, data, size);
    w->put += size;
    if (size > 0 && w->put == w->size)
        tfm__le_store(w->table + w->entry + TFM__CHECKPOINT_AT_SUM, tfm__xxh64_result(&w->sum), 8);
    return TFM_STATUS_OK;
}

enum tfm_status tfm_checkpoint_section(struct tfm_checkpoint_writer *writer, const char *name,
                                       const void *data, size_t size, struct tfm_error *err)
{
    enum tfm_status status = tfm_checkpoint_section_begin(writer, name, size, err);

    return status == TFM_STATUS_OK ? tfm_checkpoint_section_put(writer, data, size, err) : status;
}

static enum tfm_status put_end(struct tfm_checkpoint_writer *w, struct tfm_error *err)
{
    unsigned char trailer[BLOCK] = {0};
    enum tfm_status status = fill_block(w, err);
    const uint64_t table = w->at;

    if (status == TFM_STATUS_OK)
        status = put(w, w->table, w->table_size, err);
    if (status == TFM_STATUS_OK)
        status = fill_block(w, err);
    tfm__le_store(trailer + TFM__CHECKPOINT_AT_TABLE, table, 8);
    tfm__le_store(trailer + TFM__CHECKPOINT_AT_TABLE_SIZE, w->table_size, 8);
    tfm__le_store(trailer + TFM__CHECKPOINT_AT_COUNT, w->count, 8);
    tfm__le_store(trailer + TFM__CHECKPOINT_AT_FILE_SIZE, w->at + BLOCK, 8);
    tfm__le_store(trailer + TFM__CHECKPOINT_AT_TABLE_SUM, tfm__xxh64_of(w->table, w->table_size),
                  8);
    tfm__le_store(trailer + TFM__CHECKPOINT_AT_TRAILER_SUM,
                  tfm__xxh64_of(trailer, TFM__CHECKPOINT_AT_TRAILER_SUM), 8);
    memcpy(trailer + TFM__CHECKPOINT_AT_END, TFM__CHECKPOINT_END, 8);
    return status == TFM_STATUS_OK ? put(w, trailer, sizeof trailer, err) : status;
}

/* The old checkpoint gets a second name, the new one takes its first name, the second name becomes the previous one: the
 * first name is never without a file. Where files have no second names, the previous one must be whole meanwhile. 0 or
 * errno; *renamed: the new one has its name. */
static int change_names(const struct tfm__save *save, const char *previous, int *renamed)
{
    char second[sizeof save->temporary + sizeof TFM__CHECKPOINT_SECOND];
    int error = 0;

    snprintf(second, sizeof second, "%s" TFM__CHECKPOINT_SECOND, save->temporary);
    /* a file that is no checkpoint must not take the place of one that is */
    const int keep = tfm__checkpoint_plausible(save->target, 0);
    const int linked = keep && linkat(AT_FDCWD, save->target, AT_FDCWD, second, 0) == 0;
    if (keep && !linked && tfm__checkpoint_plausible(save->target, 1) &&
        rename(save->target, previous) != 0)
        error = errno;
    *renamed = !error && rename(save->temporary, save->target) == 0;
    if (!*renamed) {
        error = error ? error : errno;
        unlink(save->temporary);
    } else if (linked && rename(second, previous) != 0) {
        error = errno;
    }
    /* still there after a failure, or if both were names of one file already */
    if (linked)
        unlink(second);
    return error;
}

enum tfm_status tfm_checkpoint_writer_finish(struct tfm_checkpoint_writer *writer,
                                             struct tfm_error *err)
{
    struct tfm_checkpoint_writer *w = writer;
    enum tfm_status status;
    struct tfm_error why = {0};
    int lock, error, renamed = 0;

    tfm_error_clear(err);
    status = ready(w, err);
    if (status == TFM_STATUS_OK)
        status = put_end(w, err);
    if (status != TFM_STATUS_OK)
        return status;
    char *previous = tfm__checkpoint_in(w->folder, TFM_CHECKPOINT_PREVIOUS);
    if (!previous)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", w->save.name);
    error = tfm__save_settle(&w->save, &lock);
    if (!error)
        error = change_names(&w->save, previous, &renamed);
    if (lock >= 0)
        close(lock);
    if (!error)
        error = tfm__save_sync_folder(w->save.target);
    free(previous);
    if (!error)
        return TFM_STATUS_OK;
    status = tfm__save_fail(&w->save, error, &why);
    if (!renamed)
        return unchanged(&why, err);
    return tfm_error_set(
        err, status,
        "%s; it is there, but " TFM_CHECKPOINT_PREVIOUS
        " may be an older one, or the names may not be on the disk yet: save again "
        "when the cause is gone",
        why.text);
}

void tfm_checkpoint_writer_destroy(struct tfm_checkpoint_writer *writer)
{
    if (!writer)
        return;
    tfm__save_abandon(&writer->save);
    free(writer->folder);
    free(writer->table);
    free(writer);
}
