/* SPDX-License-Identifier: MIT
 * How near a result must be, and the sweep over row counts, offsets and memory that every row-wise op
 * goes through. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ops/trial.h"

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
static int is_rounded(enum tfm_dtype dtype, double got, double want, double rms)
{
    const double slack = 1e-3 * ulp_of(dtype, want) + (trial_is_reference() ? 0 : 2.5e-7 * rms);

    return got >= rounded(dtype, want - slack) && got <= rounded(dtype, want + slack);
}

/* Of one value: a wrong one must not hide in the mean of many. */
static double allowance(const struct trial *trial, double want, double rms)
{
    const double half_ulp = rounding[trial->output->dtype].half_ulp;
    const double tiny = rounding[trial->output->dtype].tiny;

    if (trial->exact)
        return 0;
    if (trial_is_reference()) /* sums in double, one rounding */
        return 1.0001 * half_ulp * fabs(want) + tiny + 1e-12 * rms;
    if (trial->row_tolerance > 0 && trial->output->dtype == TFM_DTYPE_F32)
        return trial->row_tolerance * fmax(fabs(want), rms);
    return (2e-4 + 2 * half_ulp) * fabs(want) + 2 * tiny + 2e-4 * rms;
}

void trial_compare(const struct trial *trial, const double *want, size_t n)
{
    const struct tfm_node *node =
        tfm_graph_node(trial->graph, tfm_graph_node_count(trial->graph) - 1);
    const enum tfm_dtype dtype = trial->output->dtype;
    const double bound = tfm_op_info(node->op)->nmse, rms = root_mean_square(want, n);
    const int narrow = dtype == TFM_DTYPE_F16 || dtype == TFM_DTYPE_BF16;
    const size_t width = (size_t)trial->output->shape[trial->output->rank - 1];
    double *got = calloc(n ? n : 1, sizeof *got);
    double error = 0, scale = rms;

    ck_assert_ptr_nonnull(got);
    trial_get(trial, trial->output, 0, n, got);
    for (size_t i = 0; i < n; i++) {
        if (trial->row_tolerance > 0 && i % width == 0)
            scale = root_mean_square(want + i, width);
        const int same = got[i] == want[i] || (isnan(got[i]) && isnan(want[i]));
        /* a NaN in one of them is not <= */
        const int near = narrow && !trial->exact
                             ? is_rounded(dtype, got[i], want[i], rms)
                             : fabs(got[i] - want[i]) <= allowance(trial, want[i], scale);
        if (!same && !near) /* an assertion of Check costs a system call, also when it holds */
            ck_abort_msg("%s: value %zu is %.17g instead of %.17g", trial->what, i, got[i],
                         want[i]);
        if (!same)
            error += (got[i] - want[i]) * (got[i] - want[i]);
    }
    /* a narrow output adds the error of its own rounding */
    const double half_ulp = rounding[dtype].half_ulp;
    const double most =
        trial->exact || bound == 0 ? 0 : bound + (dtype == TFM_DTYPE_F32 ? 0 : half_ulp * half_ulp);
    const double nmse = rms > 0 ? error / (rms * rms * (double)n) : error;
    ck_assert_msg(nmse <= most, "%s: nmse %g over %g", trial->what, nmse, most);
    free(got);
}

void trial_expect(const struct trial *trial, const double *want, size_t n, double tolerance)
{
    for (size_t i = 0; i < n; i++) {
        double got;
        trial_get(trial, trial->output, i, 1, &got);
        if (!(fabs(got - want[i]) <= tolerance))
            ck_abort_msg("%s: value %zu is %.9g instead of %.9g", trial->what, i, got, want[i]);
    }
}

/* Every count up to the capacity. want and bits hold the rows at full capacity. */
static void check_counts(struct trial *trial, const uint32_t *counts, size_t n_counts,
                         const double *want, const unsigned char *bits)
{
    const size_t width = (size_t)tfm_tensor_row_elements(trial->output);

    for (size_t c = 0; c < n_counts; c++) {
        const struct tfm_rows rows = trial_rows(counts[c], 0);
        if (counts[c] > trial->capacity.rows)
            continue;
        trial_run(trial, &rows, TFM_STATUS_OK);
        trial_compare(trial, want, counts[c] * width);
        if (bits)
            ck_assert_msg(memcmp(bits, trial->data[trial->output->id],
                                 tfm__drive_bytes(trial->output, counts[c])) == 0,
                          "%s: other bits with %u rows", trial->what, counts[c]);
    }
}

void trial_check_rows(struct trial *trial, trial_oracle *oracle)
{
    static const uint32_t all[] = {0, 1, 2, 3, 7, 8, 9, 31, 33, 65, 129, 0};
    static const uint32_t some[] = {3, 33, 1};
    static const unsigned ways[] = {TFM__DRIVE_IN_PLACE, TFM__DRIVE_ELEMENT_OFFSETS,
                                    TFM__DRIVE_WHOLE};
    const struct tfm_capacity full = trial->capacity;
    const struct tfm_rows rows = trial_rows(full.rows, 0);
    const size_t n = trial_count(trial, trial->output);
    const size_t bytes = tfm__drive_bytes(trial->output, full.rows);
    double *want = calloc(n, sizeof *want);
    unsigned char *bits = malloc(bytes);

    ck_assert(want && bits);
    if (!trial_open(trial, 0)) {
        free(want);
        free(bits);
        return;
    }
    trial_check(trial, &rows, oracle);
    memcpy(bits, trial->data[trial->output->id], bytes);
    /* later runs are held to the first one's right values */
    trial_want(trial, &rows, oracle, n, want);
    unsigned char *const same = trial_is_reference() ? bits : NULL;
    check_counts(trial, all, sizeof all / sizeof *all, want, same);
    trial_shut(trial);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        ck_assert(trial_open(trial, ways[w]));
        check_counts(trial, some, sizeof some / sizeof *some, want, same);
        trial_shut(trial);
    }
    for (size_t c = 0; c < sizeof some / sizeof *some; c++) {
        if (some[c] >= full.rows)
            continue;
        trial->capacity.rows = trial->capacity.out_rows = some[c];
        ck_assert(trial_open(trial, 0));
        check_counts(trial, &some[c], 1, want, same);
        trial_shut(trial);
        trial->capacity = full;
    }
    free(want);
    free(bits);
}
