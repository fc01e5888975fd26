/* SPDX-License-Identifier: MIT
 * The bounds of the golden cases, each a function over one row or over all. */
#include "tests/golden/torch_bounds.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int wrong_value(char *why, size_t i, double got, double want)
{
    snprintf(why, TORCH_WHY, "value %zu is %.17g instead of %.17g", i, got, want);
    return 0;
}

static double row_rms(const double *want, size_t width)
{
    double sum = 0;

    for (size_t i = 0; i < width; i++)
        sum += want[i] * want[i];
    return sqrt(sum / (double)width);
}

/* Each value within `tolerance` of the larger of it and the rms of its row. */
static int near(const double *got, const double *want, size_t n, size_t width, double tolerance,
                char *why)
{
    double rms = 0;

    for (size_t i = 0; i < n; i++) {
        if (i % width == 0)
            rms = row_rms(want + i, width);
        if (!(fabs(got[i] - want[i]) <= tolerance * fmax(fabs(want[i]), rms)))
            return wrong_value(why, i, got[i], want[i]);
    }
    return 1;
}

static int bound_row(enum tfm_dtype dtype, const double *got, const double *want, size_t n,
                     size_t width, char *why)
{
    (void)dtype;
    return near(got, want, n, width, 1e-5, why);
}

static int bound_f64(enum tfm_dtype dtype, const double *got, const double *want, size_t n,
                     size_t width, char *why)
{
    (void)dtype;
    return near(got, want, n, width, 1e-12, why);
}

static int bound_exact(enum tfm_dtype dtype, const double *got, const double *want, size_t n,
                       size_t width, char *why)
{
    (void)dtype;
    return near(got, want, n, width, 0, why);
}

static int bound_nmse(enum tfm_dtype dtype, const double *got, const double *want, size_t n,
                      size_t width, char *why)
{
    double error = 0, square = 0;

    (void)dtype, (void)width;
    for (size_t i = 0; i < n; i++) {
        error += (got[i] - want[i]) * (got[i] - want[i]);
        square += want[i] * want[i];
    }
    if (error <= 1e-9 * square)
        return 1;
    snprintf(why, TORCH_WHY, "nmse %g of %zu values; the bound is 1e-9", error / square, n);
    return 0;
}

/* Distance of two neighbours of a narrow dtype around a value. */
static double ulp_of(enum tfm_dtype dtype, double value)
{
    const int bits = dtype == TFM_DTYPE_F16 ? 10 : 7, lowest = dtype == TFM_DTYPE_F16 ? -14 : -126;
    const int exponent = value != 0 ? ilogb(value) : lowest;

    return ldexp(1, (exponent < lowest ? lowest : exponent) - bits);
}

/* By arithmetic: the library's own conversion is no witness of itself. Golden values are far from the
 * largest numbers. */
static double rounded(enum tfm_dtype dtype, double value)
{
    const double ulp = ulp_of(dtype, value);

    return rint(value / ulp) * ulp;
}

static int bound_bits(enum tfm_dtype dtype, const double *got, const double *want, size_t n,
                      size_t width, char *why)
{
    (void)width;
    for (size_t i = 0; i < n; i++) {
        const double slack = 1e-3 * ulp_of(dtype, want[i]);
        if (!(got[i] >= rounded(dtype, want[i] - slack) &&
              got[i] <= rounded(dtype, want[i] + slack)))
            return wrong_value(why, i, got[i], want[i]);
    }
    return 1;
}

int torch_compare(const char *bound, enum tfm_dtype dtype, const double *got, const double *want,
                  size_t n, size_t width, char *why)
{
    static const struct {
        const char *name;
        int (*holds)(enum tfm_dtype dtype, const double *got, const double *want, size_t n,
                     size_t width, char *why);
    } bounds[] = {{"row", bound_row},
                  {"nmse", bound_nmse},
                  {"bits", bound_bits},
                  {"exact", bound_exact},
                  {"f64", bound_f64}};

    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (strcmp(bounds[i].name, bound) == 0)
            return bounds[i].holds(dtype, got, want, n, width, why);
    snprintf(why, TORCH_WHY, "there is no bound '%s'", bound);
    return 0;
}
