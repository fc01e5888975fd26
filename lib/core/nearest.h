/* SPDX-License-Identifier: MIT
 * "Did you mean": the name that somebody mistyped. */
#ifndef TFM__CORE_NEAREST_H
#define TFM__CORE_NEAREST_H

#include <stddef.h>

/* The one of names [n] that is reached from `typed` by the fewest changes of a character (insert,
 * delete, replace; upper and lower case count as equal), the first if several are; NULL if all need
 * more than two. */
const char *tfm__nearest(const char *typed, const char *const *names, size_t n);

#endif
