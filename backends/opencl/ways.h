/* SPDX-License-Identifier: MIT
 * Several ways to multiply small numbers, fastest first, of which a device gets the first that it takes and that was
 * seen to be right: a way that a compiler accepts may still be wrong, or unknown to the processor. */
#ifndef TFM__CL_WAYS_H
#define TFM__CL_WAYS_H

#include "backends/opencl/internal.h"

/* 1 = the processor that this code runs on has it, and 512 bits; `feature` as the compiler names it. */
#if defined(__x86_64__)
#define TFM__CL_PROCESSOR_HAS(feature) \
    (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports(feature))
#else
#define TFM__CL_PROCESSOR_HAS(feature) 0
#endif

struct tfm__cl_way {
    const char *name, *options;                      /* options that choose it in the kernels */
    int (*may)(const struct tfm__cl_device *device); /* NULL = everywhere */
    int fast;                                        /* faster than f32 */
};

struct tfm__cl_ways {
    const char *numbers; /* "bytes", for texts */
    const struct tfm__cl_way *ways;
    size_t n;
    /* Runs a kernel that multiplies known numbers; *right = the results are theirs. */
    enum tfm_status (*prove)(struct tfm__cl_device *device, const struct tfm__cl_way *way,
                             int *right, struct tfm_error *err);
};

/* 1 = the compiler of the device takes inline assembly for this processor: PoCL's does. */
int tfm__cl_way_assembles(const struct tfm__cl_device *device);

/* any: slow ones count, too. NULL: there is none; why [TFM__CL_WAY_WHY] says what that means. */
enum { TFM__CL_WAY_WHY = 80 };
const struct tfm__cl_way *tfm__cl_way_find(struct tfm__cl_device *device,
                                           const struct tfm__cl_ways *ways, int any, char *why);

#endif
