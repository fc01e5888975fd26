/* SPDX-License-Identifier: MIT
 * The clock by which the program measures. */
#ifndef TFM__TOOLS_CLOCK_H
#define TFM__TOOLS_CLOCK_H

#include <time.h>

/* Seconds of a clock that never jumps. */
static inline double tfm__seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#endif
