/* SPDX-License-Identifier: MIT
 * The library's counted allocator. */
#ifndef TFM__CORE_ALLOC_H
#define TFM__CORE_ALLOC_H

#include <stddef.h>

/* Zeroed, 64-byte aligned; NULL when out of memory. Each call counts (tfm_allocations). bytes 0
 * = 1. */
void *tfm__alloc(size_t bytes);
/* n elements of `size` bytes; NULL when the product overflows. */
void *tfm__alloc_array(size_t n, size_t size);
void tfm__free(void *memory); /* NULL is fine */
char *tfm__strdup(const char *text);

#endif
