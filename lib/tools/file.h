/* SPDX-License-Identifier: MIT
 * Files of the user: read whole, or written whole or not at all. */
#ifndef TFM__TOOLS_FILE_H
#define TFM__TOOLS_FILE_H

#include <stddef.h>

/* Reads everything up to the end from an open descriptor; *data is malloc'ed. `name` stands in the
 * message. Returns 0, or 1 after it has said what is wrong. */
int tfm__file_read_fd(int fd, const char *name, char **data, size_t *size);
/* The same by path; "-" is standard input. */
int tfm__file_read(const char *path, char **data, size_t *size);

struct tfm__file_part {
    const void *data;
    size_t size;
};

/* Writes the parts to a temporary file beside `path` and renames it, so that the file is old or
 * new, never half; what is no regular file (a pipe, /dev/null) is written to directly. Returns 0,
 * or 1 after it has said what is wrong; nothing new is left behind then. */
int tfm__file_write(const char *path, const struct tfm__file_part *parts, size_t n_parts);

#endif
