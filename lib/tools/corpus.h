/* SPDX-License-Identifier: MIT
 * The texts that a vocabulary or a model is trained on: one file, or the *.txt files of a folder. */
#ifndef TFM__TOOLS_CORPUS_H
#define TFM__TOOLS_CORPUS_H

#include <stddef.h>

struct tfm__corpus {
    char **files; /* [n] by name, in the order of bytes */
    size_t n;
};

/* A folder gives the regular files in it (not in folders below) whose names end with .txt; there must be
 * one. Returns an exit code after it has said what is wrong. deinit in any case. */
int tfm__corpus_open(const char *path, struct tfm__corpus *corpus);
void tfm__corpus_deinit(struct tfm__corpus *corpus);

#endif
