/* SPDX-License-Identifier: MIT
 * The inner product that every sum of the reference goes through. Eight accumulators, value i in
 * number i mod 8, added as a tree: one fixed order for a length, and one that compilers vectorize
 * without permission to reorder. */
#ifndef TFM__REFERENCE_DOT_H
#define TFM__REFERENCE_DOT_H

#include <stddef.h>

static inline double tfm__reference_dot(const double *a, const double *b, size_t n)
{
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0, s6 = 0, s7 = 0;
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        s0 += a[i] * b[i];
        s1 += a[i + 1] * b[i + 1];
        s2 += a[i + 2] * b[i + 2];
        s3 += a[i + 3] * b[i + 3];
        s4 += a[i + 4] * b[i + 4];
        s5 += a[i + 5] * b[i + 5];
        s6 += a[i + 6] * b[i + 6];
        s7 += a[i + 7] * b[i + 7];
    }
    double sum = ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7));
    for (; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

#endif
