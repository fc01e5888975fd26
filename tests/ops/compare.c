/* SPDX-License-Identifier: MIT
 * Results beside what they must be, and the sweep over row counts, offsets and memory that every row-wise
 * op goes through. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/check/compare.h"
#include "tests/ops/trial.h"

static void compare(const struct trial *trial, const struct tfm_tensor *tensor, const double *want,
                    size_t n)
{
    const struct tfm_node *node =
        tfm_graph_node(trial->graph, tfm_graph_node_count(trial->graph) - 1);
    const struct tfm__tolerance tolerance = {.dtype = tensor->dtype,
                                             .nmse = tfm_op_info(node->op)->nmse,
                                             .exact = trial->exact,
                                             .in_double = trial_is_reference(),
                                             .unrounded = 1,
                                             .row_tolerance = trial->row_tolerance,
                                             .row = (size_t)tensor->shape[tensor->rank - 1],
                                             .width = (size_t)tfm_tensor_row_elements(tensor)};
    double *got = calloc(n ? n : 1, sizeof *got);
    struct tfm_error err = {0};

    ck_assert_ptr_nonnull(got);
    trial_get(trial, tensor, 0, n, got);
    if (tfm__compare(&tolerance, got, want, n, &err) != TFM_STATUS_OK)
        ck_abort_msg("%s: '%s': %s", trial->what, tensor->name, err.text);
    free(got);
}

void trial_compare(const struct trial *trial, const double *want, size_t n)
{
    compare(trial, trial->output, want, n);
}

void trial_compare_all(const struct trial *trial, const struct tfm_rows *rows, const double *want)
{
    for (uint32_t i = 0; i < trial->n_outputs + trial->n_sums; i++) {
        const struct tfm_tensor *t =
            i < trial->n_outputs ? trial->outputs[i] : trial->sums[i - trial->n_outputs];
        const size_t n = (size_t)(tfm_tensor_rows(t, rows) * tfm_tensor_row_elements(t));
        compare(trial, t, want, n);
        want += n;
    }
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

/* Every count up to the capacity. want and bits hold the rows of all outputs at full capacity `full`. */
static void check_counts(struct trial *trial, uint32_t full, const uint32_t *counts,
                         size_t n_counts, const double *want, const unsigned char *bits)
{
    for (size_t c = 0; c < n_counts; c++) {
        const struct tfm_rows rows = trial_rows(counts[c], 0);
        const double *right = want;
        const unsigned char *same = bits;
        if (counts[c] > trial->capacity.rows)
            continue;
        trial_run(trial, &rows, TFM_STATUS_OK);
        for (uint32_t i = 0; i < trial->n_outputs; i++) {
            const struct tfm_tensor *t = trial->outputs[i];
            const size_t width = (size_t)tfm_tensor_row_elements(t);
            compare(trial, t, right, counts[c] * width);
            if (same)
                ck_assert_msg(memcmp(same, trial->data[t->id], tfm__drive_bytes(t, counts[c])) == 0,
                              "%s: '%s': other bits with %u rows", trial->what, t->name, counts[c]);
            right += full * width;
            same = same ? same + tfm__drive_bytes(t, full) : NULL;
        }
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
    const size_t n = trial_results(trial, &rows);
    size_t bytes = 0;

    for (uint32_t i = 0; i < trial->n_outputs; i++)
        bytes += tfm__drive_bytes(trial->outputs[i], full.rows);
    ck_assert_uint_eq(trial->n_sums, 0); /* those are for trial_check_sums */
    double *want = calloc(n, sizeof *want);
    unsigned char *bits = malloc(bytes);

    ck_assert(want && bits);
    if (!trial_open(trial, 0)) {
        free(want);
        free(bits);
        return;
    }
    trial_check(trial, &rows, oracle);
    for (size_t i = 0, at = 0; i < trial->n_outputs; i++) {
        const size_t part = tfm__drive_bytes(trial->outputs[i], full.rows);
        memcpy(bits + at, trial->data[trial->outputs[i]->id], part);
        at += part;
    }
    /* later runs are held to the first one's right values */
    trial_want(trial, &rows, oracle, n, want);
    unsigned char *const same = trial_is_reference() ? bits : NULL;
    check_counts(trial, full.rows, all, sizeof all / sizeof *all, want, same);
    trial_shut(trial);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        ck_assert(trial_open(trial, ways[w]));
        check_counts(trial, full.rows, some, sizeof some / sizeof *some, want, same);
        trial_shut(trial);
    }
    for (size_t c = 0; c < sizeof some / sizeof *some; c++) {
        if (some[c] >= full.rows)
            continue;
        trial->capacity.rows = trial->capacity.out_rows = some[c];
        ck_assert(trial_open(trial, 0));
        check_counts(trial, full.rows, &some[c], 1, want, same);
        trial_shut(trial);
        trial->capacity = full;
    }
    free(want);
    free(bits);
}

/* Runs all rows from the same sums on; they go to bits, one after another. */
static void run_from(struct trial *trial, const unsigned char *start, unsigned flags,
                     unsigned char *bits)
{
    const struct tfm_rows rows = trial_rows(trial->capacity.rows, 0);

    for (uint32_t i = 0; i < trial->n_sums; i++) {
        const size_t bytes = tfm__drive_bytes(trial->sums[i], trial->sums[i]->shape[0]);
        memcpy(trial->data[trial->sums[i]->id], start, bytes);
        start += bytes;
    }
    ck_assert(trial_open(trial, flags));
    trial_run(trial, &rows, TFM_STATUS_OK);
    trial_shut(trial);
    for (uint32_t i = 0; i < trial->n_sums; i++) {
        const size_t bytes = tfm__drive_bytes(trial->sums[i], trial->sums[i]->shape[0]);
        memcpy(bits, trial->data[trial->sums[i]->id], bytes);
        bits += bytes;
    }
}

static void check_split(struct trial *trial)
{
    size_t bytes = 0;

    for (uint32_t i = 0; i < trial->n_sums; i++)
        bytes += tfm__drive_bytes(trial->sums[i], trial->sums[i]->shape[0]);
    unsigned char *start = calloc(1, bytes), *split = malloc(bytes), *whole = malloc(bytes);
    ck_assert(start && split && whole);
    run_from(trial, start, 0, split);
    run_from(trial, start, TFM__DRIVE_WHOLE, whole);
    ck_assert_msg(memcmp(split, whole, bytes) == 0, "%s: other bits when the loop is split",
                  trial->what);
    free(start);
    free(split);
    free(whole);
}

void trial_check_sums(struct trial *trial, trial_oracle *oracle)
{
    static const uint32_t counts[] = {129, 0, 1, 2, 7, 9, 31, 33, 65};
    static const unsigned ways[] = {0, TFM__DRIVE_ELEMENT_OFFSETS};
    const struct tfm_capacity full = trial->capacity;

    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        if (!trial_open(trial, ways[w]))
            return;
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            const struct tfm_rows rows = trial_rows(counts[c], 0);
            if (counts[c] <= full.rows)
                trial_check(trial, &rows, oracle);
        }
        trial_shut(trial);
    }
    for (size_t c = 2; c < 6; c++) {
        const struct tfm_rows rows = trial_rows(counts[c], 0);
        if (counts[c] >= full.rows)
            continue;
        trial->capacity.rows = trial->capacity.out_rows = counts[c];
        ck_assert(trial_open(trial, 0));
        trial_check(trial, &rows, oracle);
        trial_shut(trial);
        trial->capacity = full;
    }
    if (trial_is_reference())
        check_split(trial);
}
