/* SPDX-License-Identifier: MIT
 * The wrapped allocation functions: the linker sends all calls of this program here. */
#include <stdlib.h>

#include "tests/llm/alloc_watch.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static struct alloc_watch watch;
static int watching;
static long countdown;

/* Counts a call; returns 1 if it has to fail. */
static int note(size_t size)
{
    if (!watching)
        return 0;
    watch.count++;
    if (size > watch.largest)
        watch.largest = size;
    return countdown-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return note(size) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return note(n * size) ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return note(size) ? NULL : __real_realloc(memory, size);
}

void alloc_watch_begin(long fail_at)
{
    watch.count = 0;
    watch.largest = 0;
    countdown = fail_at;
    watching = 1;
}

struct alloc_watch alloc_watch_end(void)
{
    watching = 0;
    return watch;
}
