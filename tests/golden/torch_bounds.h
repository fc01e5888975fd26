/* SPDX-License-Identifier: MIT
 * How near a result must be to the golden one. */
#ifndef TESTS_GOLDEN_TORCH_BOUNDS_H
#define TESTS_GOLDEN_TORCH_BOUNDS_H

#include <tfm/dtype.h>

enum { TORCH_WHY = 200 };

/* Compares n results of a dtype, rows of `width` values, with those of float64 by the bound of that name:
 *   row    |got - want| <= 1e-5 max(|want|, rms of the row)
 *   nmse   sum (got - want)^2 <= 1e-9 sum want^2
 *   bits   want rounded once to nearest even; either neighbour within 1e-3 ulp of a tie
 *   exact  equal
 *   f64    |got - want| <= 1e-12 max(|want|, rms of the row)
 * Returns 1, or 0 with a text in why [TORCH_WHY]. A NaN is never near. */
int torch_compare(const char *bound, enum tfm_dtype dtype, const double *got, const double *want,
                  size_t n, size_t width, char *why);

#endif
