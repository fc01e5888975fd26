/* SPDX-License-Identifier: MIT
 * NumPy's file format. */
#ifndef TFM__TOOLS_NPY_H
#define TFM__TOOLS_NPY_H

#include <stddef.h>

/* Writes values [n] as float32, shape (n,), whole or not at all. Returns 0, or 1 after it has said
 * what is wrong. */
int tfm__npy_write(const char *path, const float *values, size_t n);

#endif
