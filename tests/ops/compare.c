/* SPDX-License-Identifier: MIT
 * Results beside what they must be, and the sweep over row counts, offsets and memory that every row-wise
 * op goes through. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/check/compare.h"
#include "tests/ops/trial.h"

void trial_compare(const struct trial *trial, const double *want, size_t n)
{
    const struct tfm_tensor *output = trial->output;
    const struct tfm_node *node =
        tfm_graph_node(trial->graph, tfm_graph_node_count(trial->graph) - 1);
    const struct tfm__tolerance tolerance = {.dtype = output->dtype,
                                             .nmse = tfm_op_info(node->op)->nmse,
                                             .exact = trial->exact,
                                             .in_double = trial_is_reference(),
                                             .unrounded = 1,
                                             .row_tolerance = trial->row_tolerance,
                                             .row = (size_t)output->shape[output->rank - 1],
                                             .width = (size_t)tfm_tensor_row_elements(output)};
    double *got = calloc(n ? n : 1, sizeof *got);
    struct tfm_error err = {0};

    ck_assert_ptr_nonnull(got);
    trial_get(trial, output, 0, n, got);
    if (tfm__compare(&tolerance, got, want, n, &err) != TFM_STATUS_OK)
        ck_abort_msg("%s: %s", trial->what, err.text);
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
