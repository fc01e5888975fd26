/* SPDX-License-Identifier: MIT
 * The table that embed.awk makes of the files in kernels/. */
#ifndef TFM_KERNELS_EMBEDDED_H
#define TFM_KERNELS_EMBEDDED_H

#include <stddef.h>

struct tfm__kernel_source {
    const char *name; /* "rms_norm.cl" */
    const char *const *lines;
    size_t n_lines; /* the #line in front included */
};

extern const struct tfm__kernel_source tfm__kernel_sources[]; /* the last one's name is NULL */

#endif
