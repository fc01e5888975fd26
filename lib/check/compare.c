/* SPDX-License-Identifier: MIT
 * Tolerances, and words for where values are wrong. */
#include "lib/check/compare.h"

#include <math.h>
#include <stdio.h>

/* Largest relative error of one rounding, and half the smallest step near zero. */
static const struct {
    double half_ulp, tiny;
} rounding[TFM_DTYPE_COUNT] = {
    [TFM_DTYPE_F32] = {0x1p-24, 0x1p-150},
    [TFM_DTYPE_F16] = {0x1p-11, 0x1p-25},
    [TFM_DTYPE_BF16] = {0x1p-8, 0x1p-134},
    [TFM_DTYPE_F64] = {0x1p-53, 0},
};

static double root_mean_square(const double *values, size_t n)
{
    double sum = 0;
    size_t finite = 0;

    for (size_t i = 0; i < n; i++) {
        if (isfinite(values[i])) {
            sum += values[i] * values[i];
            finite++;
        }
    }
    return finite ? sqrt(sum / (double)finite) : 0;
}

/* ---- one value ---- */

static int is_narrow(enum tfm_dtype dtype)
{
    return dtype == TFM_DTYPE_F16 || dtype == TFM_DTYPE_BF16;
}

/* Distance of two neighbours of a narrow dtype around a value. */
static double ulp_of(enum tfm_dtype dtype, double value)
{
    const int bits = dtype == TFM_DTYPE_F16 ? 10 : 7, lowest = dtype == TFM_DTYPE_F16 ? -14 : -126;
    const int exponent = value != 0 && isfinite(value) ? ilogb(value) : lowest;

    return ldexp(1, (exponent < lowest ? lowest : exponent) - bits);
}

/* To nearest even, by arithmetic: the library's own conversion is no witness of itself. */
static double rounded(enum tfm_dtype dtype, double value)
{
    const double ulp = ulp_of(dtype, value), largest = dtype == TFM_DTYPE_F16 ? 65504 : 0x1.fep127;
    const double multiple = rint(value / ulp) * ulp;

    return fabs(multiple) <= largest ? multiple : copysign(INFINITY, value);
}

/* The bits of `want` rounded once; near a tie either neighbour. */
static int is_rounded(const struct tfm__tolerance *t, double got, double want, double rms)
{
    const double slack = 1e-3 * ulp_of(t->dtype, want) + (t->in_double ? 0 : 2.5e-7 * rms);

    return got >= rounded(t->dtype, want - slack) && got <= rounded(t->dtype, want + slack);
}

static double allowance(const struct tfm__tolerance *t, double want, double rms)
{
    const double half_ulp = rounding[t->dtype].half_ulp, tiny = rounding[t->dtype].tiny;

    if (t->in_double) /* sums in double, one rounding */
        return 1.0001 * half_ulp * fabs(want) + tiny + 1e-12 * rms;
    if (t->row_tolerance > 0 && t->dtype == TFM_DTYPE_F32)
        return t->row_tolerance * fmax(fabs(want), rms);
    return (2e-4 + 2 * half_ulp) * fabs(want) + 2 * tiny + 2e-4 * rms;
}

/* A wrong value must not hide in the mean of many. rms is that of all values, row that of its row. */
static int is_near(const struct tfm__tolerance *t, double got, double want, double rms, double row)
{
    if (got == want || (isnan(got) && isnan(want)))
        return 1;
    if (t->exact)
        return 0;
    if (t->unrounded && is_narrow(t->dtype))
        return is_rounded(t, got, want, rms);
    /* a NaN in one of them is not <= */
    return fabs(got - want) <= allowance(t, want, row);
}

/* ---- what is wrong, over all values ---- */

enum { GUARD = 12345 }; /* fills the memory between the tensors of the driver */

struct wrong {
    size_t count, first, nans, guards;
    size_t first_column, last_column;
};

static void note(struct wrong *w, size_t i, size_t width, double got, double want)
{
    const size_t column = i % width;

    if (w->count == 0) {
        w->first = i;
        w->first_column = w->last_column = column;
    }
    w->first_column = column < w->first_column ? column : w->first_column;
    w->last_column = column > w->last_column ? column : w->last_column;
    w->nans += isnan(got) && !isnan(want);
    w->guards += fabs(got - GUARD) < 100 && fabs(want) < GUARD - 345;
    w->count++;
}

static const char *hint(const struct wrong *w)
{
    if (w->nans == w->count)
        return "; they are NaN: read from an output's old content, or from what must not be seen";
    if (w->guards == w->count)
        return "; they are near 12345, which fills the memory between tensors: an offset was "
               "ignored, or a place outside was read";
    return "";
}

static enum tfm_status tell(const struct wrong *w, const struct tfm__tolerance *t, size_t n,
                            const double *got, const double *want, struct tfm_error *err)
{
    char where[120] = "";

    if (w->last_column - w->first_column + 1 < t->width)
        snprintf(where, sizeof where, ", all in columns %zu..%zu of %zu", w->first_column,
                 w->last_column, t->width);
    return tfm_error_set(err, TFM_STATUS_INTERNAL,
                         "value %zu of row %zu is %.9g instead of %.9g; %zu of %zu values are "
                         "wrong%s%s",
                         w->first % t->width, w->first / t->width, got[w->first], want[w->first],
                         w->count, n, where, hint(w));
}

enum tfm_status tfm__compare(const struct tfm__tolerance *t, const double *got, const double *want,
                             size_t n, struct tfm_error *err)
{
    const double half_ulp = rounding[t->dtype].half_ulp, rms = root_mean_square(want, n);
    struct wrong wrong = {0};
    double error = 0, row = rms;

    for (size_t i = 0; i < n; i++) {
        if (t->row_tolerance > 0 && i % t->row == 0)
            row = root_mean_square(want + i, t->row);
        if (!is_near(t, got[i], want[i], rms, row))
            note(&wrong, i, t->width, got[i], want[i]);
        else if (isfinite(want[i]))
            error += (got[i] - want[i]) * (got[i] - want[i]);
    }
    if (wrong.count)
        return tell(&wrong, t, n, got, want, err);
    /* a narrow output adds the error of its own rounding */
    const double most = t->exact || t->nmse == 0
                            ? 0
                            : t->nmse + (t->dtype == TFM_DTYPE_F32 ? 0 : half_ulp * half_ulp);
    const double nmse = rms > 0 ? error / (rms * rms * (double)n) : error;
    if (!(nmse <= most))
        return tfm_error_set(err, TFM_STATUS_INTERNAL,
                             "normalized mean square error %g, the op allows %g", nmse, most);
    return TFM_STATUS_OK;
}
