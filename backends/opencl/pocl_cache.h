/* SPDX-License-Identifier: MIT
 * PoCL's kernel cache: what is damaged there is removed before it is used. Nothing on other platforms. */
#ifndef TFM_OPENCL_POCL_CACHE_H
#define TFM_OPENCL_POCL_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct tfm__cl_device;

/* One program that is built. */
struct tfm__cl_pocl_build {
    uint64_t key; /* 0 = there is nothing to look after */
    struct timespec since;
};

/* Before the program of n strings is built: removes what is damaged of it, and of all programs if it is not known
 * yet which is it. */
void tfm__cl_pocl_cache_before(const struct tfm__cl_device *device, const char *options,
                               const char **strings, size_t n, struct tfm__cl_pocl_build *build);
/* It is built: keeps in mind where it lies. */
void tfm__cl_pocl_cache_after(const struct tfm__cl_device *device,
                              const struct tfm__cl_pocl_build *build);
/* Somebody else is about to build programs: removes all that is damaged. */
void tfm__cl_pocl_cache_check(const struct tfm__cl_device *device);
/* The device is closed: notes the sums of what it has used. */
void tfm__cl_pocl_cache_note(const struct tfm__cl_device *device);

#endif
