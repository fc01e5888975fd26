/* SPDX-License-Identifier: MIT
 * Reads NumPy's file format, version 1.0: what make_golden.py writes and nothing else. */
#ifndef TESTS_GOLDEN_NPY_H
#define TESTS_GOLDEN_NPY_H

#include <stddef.h>
#include <stdint.h>

enum { NPY_RANK = 4 };

struct npy {
    char type[3]; /* "f4", "f8", "u2" or "i4", little endian, C order */
    int rank;     /* 1..NPY_RANK */
    int64_t shape[NPY_RANK];
    size_t count, bytes;
    void *data; /* malloc'ed */
};

/* Returns NULL, or what is wrong with the file; then nothing is to be freed. */
const char *npy_parse(const void *file, size_t size, struct npy *array);
const char *npy_read(const char *path, struct npy *array);
void npy_free(struct npy *array);

#endif
