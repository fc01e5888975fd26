/* SPDX-License-Identifier: MIT
 * The bytes of a checkpoint, and what its reader and its writer share. docs/checkpoints.md has the picture. */
#ifndef TFM__TRAIN_CHECKPOINT_FILE_H
#define TFM__TRAIN_CHECKPOINT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include <tfm/checkpoint.h>

#include "lib/core/map.h"

#define TFM__CHECKPOINT_MAGIC "TFMCKPT" /* with its 0 */
#define TFM__CHECKPOINT_END   "TFMCKEND"

enum {
    TFM__CHECKPOINT_VERSION = 1,
    TFM__CHECKPOINT_BLOCK = TFM_CHECKPOINT_ALIGNMENT, /* bytes of head and of trailer */
    /* places in the head */
    TFM__CHECKPOINT_AT_VERSION = 8,
    TFM__CHECKPOINT_AT_HEAD_SUM = 16, /* of the bytes before it */
    /* places in an entry of the table; zeros follow the name up to a multiple of 8, at least one */
    TFM__CHECKPOINT_AT_OFFSET = 0,
    TFM__CHECKPOINT_AT_SIZE = 8,
    TFM__CHECKPOINT_AT_SUM = 16,
    TFM__CHECKPOINT_AT_NAME_SIZE = 24,
    TFM__CHECKPOINT_AT_NAME = 32,
    /* places in the trailer */
    TFM__CHECKPOINT_AT_TABLE = 0,
    TFM__CHECKPOINT_AT_TABLE_SIZE = 8,
    TFM__CHECKPOINT_AT_COUNT = 16,
    TFM__CHECKPOINT_AT_FILE_SIZE = 24,
    TFM__CHECKPOINT_AT_TABLE_SUM = 32,
    TFM__CHECKPOINT_AT_TRAILER_SUM = 40, /* of the bytes before it */
    TFM__CHECKPOINT_AT_END = 56,
};

struct tfm__checkpoint_section {
    const char *name;
    const unsigned char *data;
    size_t size;
    uint64_t sum;
};

/* Parses and checks head, table and trailer, and all data if `whole`. *sections is the caller's to free. FORMAT,
 * UNSUPPORTED, NOMEM; `name` is that of the file in texts. */
enum tfm_status tfm__checkpoint_check(const struct tfm__map *map, const char *name, int whole,
                                      struct tfm__checkpoint_section **sections, size_t *n,
                                      struct tfm_error *err);
/* 1 if a file of this name has head, table and trailer that belong together, and if `whole` the right data. */
int tfm__checkpoint_plausible(const char *path, int whole);

/* FOLDER/NAME; NULL when out of memory. */
char *tfm__checkpoint_in(const char *folder, const char *name);
/* What the name of a second link to the old checkpoint ends with, behind that of a temporary file. */
#define TFM__CHECKPOINT_SECOND "-old"

/* Takes the temporary files away that processes left in a folder which ended while they wrote. */
void tfm__checkpoint_clean(const char *folder);

#endif
