/* SPDX-License-Identifier: MIT
 * Checked arithmetic for every size that comes from outside: each returns 0 and stores the result, or
 * returns 1 on overflow and leaves it alone. Header-only, so that libtfm-llm can use it. */
#ifndef TFM__CORE_CHECKED_H
#define TFM__CORE_CHECKED_H

#include <stddef.h>
#include <stdint.h>

static inline int tfm__mul_size(size_t a, size_t b, size_t *result)
{
    size_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return 1;
    *result = r;
    return 0;
}

static inline int tfm__add_size(size_t a, size_t b, size_t *result)
{
    size_t r;
    if (__builtin_add_overflow(a, b, &r))
        return 1;
    *result = r;
    return 0;
}

/* Rounds up to a multiple of `alignment`, a power of two. */
static inline int tfm__align_size(size_t n, size_t alignment, size_t *result)
{
    size_t r;
    if (tfm__add_size(n, alignment - 1, &r))
        return 1;
    *result = r & ~(alignment - 1);
    return 0;
}

#endif
