/* SPDX-License-Identifier: MIT
 * The loop of the ops that compute element by element: chunks of a tensor as double, one rounding. The
 * output may be the memory of the first input. */
#ifndef TFM__REFERENCE_ELEMENTWISE_H
#define TFM__REFERENCE_ELEMENTWISE_H

#include "backends/reference/reference.h"

/* Computes n <= TFM__REFERENCE_CHUNK values in place; the second form with those of the other input. */
typedef void tfm__reference_map(const struct tfm_attrs *attrs, double *x, size_t n);
typedef void tfm__reference_map_two(const struct tfm_attrs *attrs, double *a, const double *b,
                                    size_t n);

enum tfm_status tfm__reference_each(const struct tfm__reference_call *call,
                                    tfm__reference_map *map);
enum tfm_status tfm__reference_each_two(const struct tfm__reference_call *call,
                                        tfm__reference_map_two *map);

#endif
