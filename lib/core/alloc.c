/* SPDX-License-Identifier: MIT
 * The library's allocator: aligned, zeroed, counted. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/device.h>

#include "lib/core/alloc.h"
#include "lib/core/checked.h"

static atomic_uint_least64_t count;

void *tfm__alloc(size_t bytes)
{
    size_t rounded;
    void *memory;

    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    if (tfm__align_size(bytes ? bytes : 1, 64, &rounded))
        return NULL;
    memory = aligned_alloc(64, rounded);
    if (memory)
        memset(memory, 0, rounded);
    return memory;
}

void *tfm__alloc_array(size_t n, size_t size)
{
    size_t bytes;
    return tfm__mul_size(n, size, &bytes) ? NULL : tfm__alloc(bytes);
}

void tfm__free(void *memory)
{
    free(memory);
}

char *tfm__strdup(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = tfm__alloc(size);
    if (copy)
        memcpy(copy, text, size);
    return copy;
}

uint64_t tfm_allocations(void)
{
    return atomic_load_explicit(&count, memory_order_relaxed);
}
