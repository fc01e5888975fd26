/* SPDX-License-Identifier: MIT
 * Watches malloc, calloc and realloc of a test program that is linked with $(alloc_watch_ldflags), and
 * lets one of them fail. One thread only. */
#ifndef TESTS_LLM_ALLOC_WATCH_H
#define TESTS_LLM_ALLOC_WATCH_H

#include <stddef.h>

struct alloc_watch {
    size_t count;   /* calls */
    size_t largest; /* bytes of the largest one */
};

/* From here on counts; call number `fail_at` (from 0) returns NULL, none if it is negative. */
void alloc_watch_begin(long fail_at);
struct alloc_watch alloc_watch_end(void);

#endif
