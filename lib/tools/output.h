/* SPDX-License-Identifier: MIT
 * Standard output: written whole or told why not. */
#ifndef TFM__TOOLS_OUTPUT_H
#define TFM__TOOLS_OUTPUT_H

#include <stddef.h>

/* Makes descriptors 0, 1, 2 belong to something, so that a file opened later never stands for a
 * closed standard stream; a closed output fails when it is written to. Ignores SIGPIPE and
 * SIGXFSZ: a reader that went away, or a limit on the size of files, is a write error like others. */
void tfm__output_init(void);
/* Writes and flushes. Returns 0, or 1 after it has said why; says it once. */
int tfm__output_write(const char *data, size_t size);
/* Flushes and closes standard output; to be called last. Returns `code`, or 1 after it has said
 * that something could not be written. */
int tfm__output_close(int code);

#endif
