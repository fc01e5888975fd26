/* SPDX-License-Identifier: MIT
 * The wrapped allocation functions: a set of the blocks in use. A block from elsewhere (strdup) that is
 * freed here is not in the set and changes nothing. */
#include "tests/opencl/live_memory.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *memory);

enum { SLOTS = 1 << 18 }; /* open addressing: never more than half full, or the test ends */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uintptr_t slots[SLOTS]; /* 0 = empty */
static long used;

static size_t home(uintptr_t block)
{
    return (size_t)(block * 0x9E3779B97F4A7C15u >> 40) % SLOTS;
}

static void *put(void *memory)
{
    if (!memory)
        return NULL;
    pthread_mutex_lock(&lock);
    size_t i = home((uintptr_t)memory);
    while (slots[i])
        i = (i + 1) % SLOTS;
    slots[i] = (uintptr_t)memory;
    if (++used > SLOTS / 2) {
        fputs("live_memory: too many blocks for its table\n", stderr);
        abort();
    }
    pthread_mutex_unlock(&lock);
    return memory;
}

static void take(const void *memory)
{
    pthread_mutex_lock(&lock);
    size_t i = home((uintptr_t)memory);
    while (slots[i] && slots[i] != (uintptr_t)memory)
        i = (i + 1) % SLOTS;
    if (slots[i]) {
        slots[i] = 0;
        used--;
        /* those behind it may have wanted its place */
        for (size_t k = (i + 1) % SLOTS; slots[k]; k = (k + 1) % SLOTS) {
            const uintptr_t block = slots[k];
            slots[k] = 0;
            size_t to = home(block);
            while (slots[to])
                to = (to + 1) % SLOTS;
            slots[to] = block;
        }
    }
    pthread_mutex_unlock(&lock);
}

void *__wrap_malloc(size_t size)
{
    return put(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
    return put(__real_calloc(n, size));
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return put(__real_aligned_alloc(alignment, size));
}

void *__wrap_realloc(void *memory, size_t size)
{
    take(memory);
    void *moved = __real_realloc(memory, size);
    if (!moved && size)
        (void)put(memory); /* still there */
    return put(moved);
}

void __wrap_free(void *memory)
{
    if (memory)
        take(memory);
    __real_free(memory);
}

long live_memory(void)
{
    pthread_mutex_lock(&lock);
    const long n = used;
    pthread_mutex_unlock(&lock);
    return n;
}
