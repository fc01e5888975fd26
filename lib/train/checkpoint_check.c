/* SPDX-License-Identifier: MIT
 * Is this a whole checkpoint? Nothing of the file is believed before its checksum agreed, and a size not even then: a
 * file can be made to agree. There is one way to write given sections, so every byte has one right value. */
#include <stdlib.h>
#include <string.h>

#include "lib/core/checked.h"
#include "lib/core/little_endian.h"
#include "lib/train/checkpoint_file.h"
#include "lib/train/xxh64.h"

enum { BLOCK = TFM__CHECKPOINT_BLOCK };

/* What is read at a time before its memory is given back. */
#define DROP_BYTES ((size_t)32 << 20)

struct parser {
    const struct tfm__map *map;
    const char *name;
    const unsigned char *table;
    size_t table_size, count;
    struct tfm__checkpoint_section *sections;
};

static enum tfm_status damaged(const struct parser *p, struct tfm_error *err, const char *what)
{
    return tfm_error_set(err, TFM_STATUS_FORMAT, "%s: %s: it is damaged, take another checkpoint",
                         p->name, what);
}

static int zeros(const unsigned char *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (from[i])
            return 0;
    return 1;
}

static enum tfm_status check_head(const struct parser *p, struct tfm_error *err)
{
    const unsigned char *head = p->map->base;

    if (p->map->size < BLOCK || memcmp(head, TFM__CHECKPOINT_MAGIC, 8) != 0)
        return tfm_error_set(err, TFM_STATUS_FORMAT, "%s: not a checkpoint of TFM", p->name);
    if (tfm__le_load(head + TFM__CHECKPOINT_AT_HEAD_SUM, 8) !=
        tfm__xxh64_of(head, TFM__CHECKPOINT_AT_HEAD_SUM))
        return damaged(p, err, "its head does not have the checksum that stands in it");
    const uint64_t version = tfm__le_load(head + TFM__CHECKPOINT_AT_VERSION, 8);
    if (version != TFM__CHECKPOINT_VERSION)
        return tfm_error_set(err, TFM_STATUS_UNSUPPORTED,
                             "%s: a checkpoint of version %llu, this TFM reads version %d: go on "
                             "with the TFM that wrote it",
                             p->name, (unsigned long long)version, TFM__CHECKPOINT_VERSION);
    if (!zeros(head + TFM__CHECKPOINT_AT_HEAD_SUM + 8, BLOCK - TFM__CHECKPOINT_AT_HEAD_SUM - 8))
        return damaged(p, err, "the end of its head is not zero");
    return TFM_STATUS_OK;
}

/* Where is the table, and does it end where the trailer begins? */
static enum tfm_status check_trailer(struct parser *p, struct tfm_error *err)
{
    const size_t size = p->map->size, before = size - BLOCK;
    const unsigned char *trailer = p->map->base + before;

    if (before < BLOCK || memcmp(trailer + TFM__CHECKPOINT_AT_END, TFM__CHECKPOINT_END, 8) != 0)
        return tfm_error_set(err, TFM_STATUS_FORMAT,
                             "%s: has no trailer at its end, byte %zu: it was cut off or never "
                             "finished, take another checkpoint",
                             p->name, size);
    if (tfm__le_load(trailer + TFM__CHECKPOINT_AT_TRAILER_SUM, 8) !=
            tfm__xxh64_of(trailer, TFM__CHECKPOINT_AT_TRAILER_SUM) ||
        !zeros(trailer + TFM__CHECKPOINT_AT_TRAILER_SUM + 8, 8))
        return damaged(p, err, "its trailer does not have the checksum that stands in it");
    const uint64_t file = tfm__le_load(trailer + TFM__CHECKPOINT_AT_FILE_SIZE, 8),
                   table = tfm__le_load(trailer + TFM__CHECKPOINT_AT_TABLE, 8),
                   table_size = tfm__le_load(trailer + TFM__CHECKPOINT_AT_TABLE_SIZE, 8),
                   count = tfm__le_load(trailer + TFM__CHECKPOINT_AT_COUNT, 8);
    if (file != size)
        return tfm_error_set(err, TFM_STATUS_FORMAT,
                             "%s: has %zu bytes, its trailer says %llu: bytes are missing or too "
                             "many, take another checkpoint",
                             p->name, size, (unsigned long long)file);
    /* the table lies between the two blocks, up to the zeros that fill its last one */
    if (table < BLOCK || table % BLOCK || table > before || table_size > before - table ||
        before - table - table_size >= BLOCK || before % BLOCK ||
        !zeros(p->map->base + table + table_size, (size_t)(before - table - table_size)))
        return damaged(p, err, "its trailer names a table that cannot be");
    if (count > table_size / TFM__CHECKPOINT_AT_NAME)
        return damaged(p, err, "its trailer counts more sections than its table can hold");
    p->table = p->map->base + table;
    p->table_size = (size_t)table_size;
    p->count = (size_t)count;
    if (tfm__xxh64_of(p->table, p->table_size) !=
        tfm__le_load(trailer + TFM__CHECKPOINT_AT_TABLE_SUM, 8))
        return damaged(p, err, "its table does not have the checksum that its trailer says");
    return TFM_STATUS_OK;
}

/* One entry; moves *entry behind it and *end behind its data. */
static enum tfm_status parse_entry(struct parser *p, const unsigned char **entry, size_t *end,
                                   struct tfm__checkpoint_section *section, struct tfm_error *err)
{
    const unsigned char *e = *entry;
    size_t left = p->table_size - (size_t)(e - p->table), begin = 0, room;

    if (left < TFM__CHECKPOINT_AT_NAME)
        return damaged(p, err, "its table is too short for its sections");
    left -= TFM__CHECKPOINT_AT_NAME;
    const uint64_t name_size = tfm__le_load(e + TFM__CHECKPOINT_AT_NAME_SIZE, 8),
                   offset = tfm__le_load(e + TFM__CHECKPOINT_AT_OFFSET, 8),
                   size = tfm__le_load(e + TFM__CHECKPOINT_AT_SIZE, 8);
    if (name_size == 0 || name_size > TFM_CHECKPOINT_NAME_MAX)
        return damaged(p, err, "a name in its table is empty or too long");
    room = ((size_t)name_size / 8 + 1) * 8;
    const char *name = (const char *)e + TFM__CHECKPOINT_AT_NAME;
    if (room > left || memchr(name, 0, (size_t)name_size) ||
        !zeros(e + TFM__CHECKPOINT_AT_NAME + name_size, room - (size_t)name_size))
        return damaged(p, err, "a name in its table does not end where it should");
    /* the only place is the next multiple of 64 behind the section before */
    const size_t table = (size_t)(p->table - p->map->base);
    if (tfm__align_size(*end, BLOCK, &begin) || offset != begin || begin > table ||
        size > table - begin || !zeros(p->map->base + *end, begin - *end))
        return tfm_error_set(err, TFM_STATUS_FORMAT,
                             "%s: section \"%.*s\" has %llu bytes at byte %llu, its place is byte "
                             "%zu and the table begins at %zu: it is damaged, take another "
                             "checkpoint",
                             p->name, (int)name_size, name, (unsigned long long)size,
                             (unsigned long long)offset, begin, table);
    section->name = name;
    section->data = p->map->base + begin;
    section->size = (size_t)size;
    section->sum = tfm__le_load(e + TFM__CHECKPOINT_AT_SUM, 8);
    *end = begin + section->size;
    *entry = e + TFM__CHECKPOINT_AT_NAME + room;
    return TFM_STATUS_OK;
}

static enum tfm_status parse_table(struct parser *p, struct tfm_error *err)
{
    const unsigned char *entry = p->table;
    size_t end = BLOCK, table = (size_t)(p->table - p->map->base), last;
    enum tfm_status status = TFM_STATUS_OK;

    for (size_t i = 0; i < p->count && status == TFM_STATUS_OK; i++)
        status = parse_entry(p, &entry, &end, &p->sections[i], err);
    if (status != TFM_STATUS_OK)
        return status;
    if (tfm__align_size(end, BLOCK, &last) || last != table ||
        !zeros(p->map->base + end, table - end) || entry != p->table + p->table_size)
        return damaged(p, err, "there are bytes that belong to no section");
    return TFM_STATUS_OK;
}

static enum tfm_status check_data(const struct parser *p, struct tfm_error *err)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct tfm__checkpoint_section *s = &p->sections[i];
        struct tfm__xxh64 sum;

        tfm__xxh64_init(&sum);
        for (size_t at = 0, piece; at < s->size; at += piece) {
            piece = s->size - at < DROP_BYTES ? s->size - at : DROP_BYTES;
            tfm__xxh64_add(&sum, s->data + at, piece);
            tfm__map_drop(p->map, s->data + at, piece);
        }
        const uint64_t have = tfm__xxh64_result(&sum);
        if (have != s->sum)
            return tfm_error_set(err, TFM_STATUS_FORMAT,
                                 "%s: section \"%s\": its %zu bytes have the checksum %016llx, the "
                                 "table says %016llx: it is damaged, take another checkpoint",
                                 p->name, s->name, s->size, (unsigned long long)have,
                                 (unsigned long long)s->sum);
    }
    return TFM_STATUS_OK;
}

enum tfm_status tfm__checkpoint_check(const struct tfm__map *map, const char *name, int whole,
                                      struct tfm__checkpoint_section **sections, size_t *n,
                                      struct tfm_error *err)
{
    struct parser p = {.map = map, .name = name};
    enum tfm_status status = check_head(&p, err);

    if (status == TFM_STATUS_OK)
        status = check_trailer(&p, err);
    if (status != TFM_STATUS_OK)
        return status;
    p.sections = calloc(p.count + 1, sizeof *p.sections);
    if (!p.sections)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", name);
    status = parse_table(&p, err);
    if (status == TFM_STATUS_OK && whole)
        status = check_data(&p, err);
    if (status != TFM_STATUS_OK) {
        free(p.sections);
    } else {
        *sections = p.sections;
        *n = p.count;
    }
    return status;
}

int tfm__checkpoint_plausible(const char *path, int whole)
{
    struct tfm__checkpoint_section *sections = NULL;
    struct tfm__map map = {NULL, 0, 0};
    size_t n;
    int plausible;

    if (tfm__map_open(&map, path, "a checkpoint", NULL) != TFM_STATUS_OK)
        return 0;
    plausible = tfm__checkpoint_check(&map, path, whole, &sections, &n, NULL) == TFM_STATUS_OK;
    free(sections);
    tfm__map_close(&map);
    return plausible;
}
