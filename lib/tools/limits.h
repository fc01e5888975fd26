/* SPDX-License-Identifier: MIT
 * What this machine's CPUs can do at most, measured: the yardstick of `tfm bench-ops`. */
#ifndef TFM__TOOLS_LIMITS_H
#define TFM__TOOLS_LIMITS_H

#include <stddef.h>
#include <stdint.h>

struct tfm__limits {
    uint32_t threads;
    /* Bytes a second that all threads together read from memory: each sums its own part of a block that
     * is several times as large as the last-level cache; the fastest of several passes. */
    double read;
    size_t read_bytes; /* the block */
    /* f32 operations a second of all threads together, two a fused multiply-add, in registers alone, with
     * the widest vectors that the CPU has of those that this program knows. */
    double fma;
    const char *fma_kind; /* "avx512f" */
};

/* Takes about half a second. 0, or 1 when out of memory or threads. */
int tfm__limits_measure(uint32_t threads, struct tfm__limits *limits);

#endif
