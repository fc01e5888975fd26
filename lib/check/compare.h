/* SPDX-License-Identifier: MIT
 * How near the values of an output must be to the right ones, for the checker and for the op tests. */
#ifndef TFM__CHECK_COMPARE_H
#define TFM__CHECK_COMPARE_H

#include <stddef.h>

#include <tfm/dtype.h>

struct tfm__tolerance {
    enum tfm_dtype dtype; /* of the output */
    double nmse;          /* as ops.def has it for the op */
    int exact;            /* values must be equal, whatever nmse allows */
    int in_double;        /* got was computed in double and rounded once: the reference itself */
    int unrounded;        /* want was not rounded to dtype: an f16 or bf16 must be its one rounding,
                             but within 1e-3 ulp of a tie */
    double row_tolerance; /* > 0: an f32 lies within it times max(|want|, rms of its row) */
    size_t row;           /* values of such a row: the last extent */
    size_t width;         /* values of one outermost slice, for the words */
};

/* n values. INTERNAL: the text has the first wrong value, how many are wrong and where they lie. NaN and
 * infinities must be where they are wanted. */
enum tfm_status tfm__compare(const struct tfm__tolerance *tolerance, const double *got,
                             const double *want, size_t n, struct tfm_error *err);

#endif
