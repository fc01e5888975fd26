/* SPDX-License-Identifier: MIT
 * What tfm_device_extension(device, "opencl.counters-1") returns: counts since the module was loaded,
 * over all devices and threads of the process. They tell a test or a tuner what really ran. */
#ifndef TFM_OPENCL_COUNTERS_H
#define TFM_OPENCL_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#define TFM_OPENCL_COUNTERS "opencl.counters-1"

/* Append only: read a member only if struct_size covers it. */
struct tfm_opencl_counters {
    size_t struct_size;
    uint64_t (*sgemm_calls)(void);      /* calls of CLBlast's SGEMM by runs */
    uint64_t (*kernel_launches)(void);  /* launches of our own kernels by runs */
    uint64_t (*persistent_runs)(void);  /* runs tried as one launch */
    uint64_t (*persistent_bails)(void); /* launches of those whose parts left before the end */
};

#endif
