/* SPDX-License-Identifier: MIT
 * Cases of adamw. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/grad.h>

#include "tests/ops/trial.h"

enum { W, G, M, V, MASTER, VARIABLES };

static const char *const names[VARIABLES] = {"w", "g", "m", "v", "master"};
static struct tfm_tensor *tensors[VARIABLES], *hyper;

/* Of a step t = 3 with beta1 0.75, beta2 0.875. */
static const double settings[TFM_ADAMW_HYPERS] = {
    0.01, 0.75, 0.875, 0x1p-10, 0.001, 0.5, 1 / (1 - 0.421875), 1 / (1 - 0.669921875)};

/* The paper's algorithm 2, in its order: first the decay, then the step. Sums: w, g, m, v, master. */
static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    const int narrow = tensors[MASTER] != NULL;
    const size_t n = trial_count(trial, tensors[W]);
    const double *h = trial->values[hyper->id];

    for (size_t i = 0; i < n; i++) {
        double *const at = &want[i];
        const double w = trial->values[tensors[narrow ? MASTER : W]->id][i];
        const double g = trial->values[tensors[G]->id][i], m = trial->values[tensors[M]->id][i];
        const double v = trial->values[tensors[V]->id][i];
        if (rows->n == 0) {
            at[0] = trial->values[tensors[W]->id][i];
            at[n] = g;
            at[2 * n] = m;
            at[3 * n] = v;
            if (narrow)
                at[4 * n] = w;
            continue;
        }
        const double new_m = h[1] * m + (1 - h[1]) * (h[5] * g);
        const double new_v = h[2] * v + (1 - h[2]) * (h[5] * g) * (h[5] * g);
        const double made = w * (1 - h[4]) - h[0] * (new_m * h[6]) / (sqrt(new_v * h[7]) + h[3]);
        at[0] = made;
        at[n] = 0;
        at[2 * n] = new_m;
        at[3 * n] = new_v;
        if (narrow)
            at[4 * n] = made;
    }
}

/* Second moments are not negative; only the first row of settings makes sense. */
static void fill(struct trial *t, double size)
{
    for (size_t i = 0; i < trial_count(t, tensors[V]); i++) {
        const double v = size * trial_random(i), g = size * (2 * trial_random(i * 31 + 7) - 1);
        trial_set(t, tensors[V], i, 1, &v);
        trial_set(t, tensors[G], i, 1, &g);
    }
    trial_set_all(t, hyper, 1e6);
    trial_set(t, hyper, 0, TFM_ADAMW_HYPERS, settings);
}

static void build(struct trial *t, enum tfm_dtype dtype, int rank, int64_t d0, int64_t d1)
{
    const enum tfm_dtype exact = dtype == TFM_DTYPE_F64 ? dtype : TFM_DTYPE_F32;

    trial_begin(t, 3, "adamw %s rank %d [%lld, %lld]", tfm_dtype_name(dtype), rank, (long long)d0,
                (long long)d1);
    tensors[W] = trial_trainable(t, "w", dtype, rank, d0, d1);
    trial_changes(t, tensors[W]);
    for (int i = G; i <= MASTER; i++)
        tensors[i] =
            i < MASTER || dtype != exact ? trial_sum(t, names[i], exact, rank, d0, d1) : NULL;
    hyper = trial_input(t, "hyper", exact, 2, TFM_ADAMW_HYPERS, 0);
    trial_output(t, tfm_op_adamw(t->graph, tensors[W], tensors[G], tensors[M], tensors[V], hyper,
                                 tensors[MASTER]));
    fill(t, 1);
}

static const int64_t sizes[][2] = {{1, 0}, {7, 0}, {16, 0}, {31, 0}, {33, 65}, {91, 577}};
static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_BF16, TFM_DTYPE_F16,
                                        TFM_DTYPE_F64};

/* A narrow w is its exact value, rounded once. */
static void check_rounding(const struct trial *t)
{
    const size_t bytes = tfm__drive_bytes(tensors[W], tensors[W]->shape[0]);
    unsigned char *want = malloc(bytes);

    ck_assert_ptr_nonnull(want);
    tfm_dtype_from_f32(tensors[W]->dtype, t->data[tensors[MASTER]->id], want, 0,
                       trial_count(t, tensors[W]));
    ck_assert_msg(memcmp(want, t->data[tensors[W]->id], bytes) == 0, "%s: not rounded", t->what);
    free(want);
}

/* Fault: a term of the formula is wrong or in another place; the last elements are left out; the gradient is not
 * zeroed, or before it was read; a run without rows changes something; a later row of settings counts. */
START_TEST(updates)
{
    static const unsigned ways[] = {0, TFM__DRIVE_ELEMENT_OFFSETS, TFM__DRIVE_WHOLE};
    static const uint32_t counts[] = {1, 0, 3, 1};
    const int64_t *size = sizes[_i / 4];
    struct trial t;

    build(&t, dtypes[_i % 4], size[1] ? 2 : 1, size[0], size[1]);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        if (!trial_open(&t, ways[w]))
            break;
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            const struct tfm_rows rows = trial_rows(counts[c], 0);
            fill(&t, c == 3 ? 1e-3 : 1);
            trial_check(&t, &rows, naive);
            if (tensors[MASTER] && rows.n)
                check_rounding(&t);
        }
        trial_shut(&t);
    }
    trial_end(&t);
}
END_TEST

/* Fault: any of the numbers of one element worked out by hand. With beta1 0.5, beta2 0.75, t = 1: m = 0.5, v = 0.25, both
 * corrected 1; w = 2 - 0.25 2 - 0.125 1 / (1 + 1) = 1.4375. */
START_TEST(one_element_by_hand)
{
    static const double h[TFM_ADAMW_HYPERS] = {0.125, 0.5, 0.75, 1, 0.25, 0.25, 2, 4};
    static const double before[] = {2, 4, 0, 0}, after[] = {1.4375, 0, 0.5, 0.25};
    const struct tfm_rows rows = trial_rows(1, 0);
    struct trial t;
    double got;

    build(&t, TFM_DTYPE_F32, 1, 1, 0);
    trial_set(&t, hyper, 0, TFM_ADAMW_HYPERS, h);
    for (int i = W; i <= V; i++)
        trial_set(&t, tensors[i], 0, 1, &before[i]);
    ck_assert(trial_open(&t, 0));
    trial_run(&t, &rows, TFM_STATUS_OK);
    for (int i = W; i <= V; i++) {
        trial_get(&t, tensors[i], 0, 1, &got);
        ck_assert_double_eq(got, after[i]);
    }
    trial_end(&t);
}
END_TEST

/* Fault: a gradient that was always zero divides zero by zero without the eps, or moves the parameter. */
START_TEST(no_gradient_no_step)
{
    const struct tfm_rows rows = trial_rows(1, 0);
    struct trial t;
    double got, want = 1;

    build(&t, TFM_DTYPE_F32, 1, 33, 0);
    trial_set_all(&t, tensors[W], 1);
    for (int i = G; i <= V; i++)
        trial_set_all(&t, tensors[i], 0);
    ck_assert(trial_open(&t, 0));
    trial_run(&t, &rows, TFM_STATUS_OK);
    want -= 0.001; /* the decay */
    for (size_t i = 0; i < 33; i++) {
        trial_get(&t, tensors[W], i, 1, &got);
        ck_assert_double_eq_tol(got, want, 1e-7);
    }
    trial_end(&t);
}
END_TEST

/* Fault: what does not belong together becomes a node: moments of another shape, settings of another width, a frozen
 * parameter, a narrow one without its exact values, exact values beside an exact one. */
START_TEST(refusals)
{
    struct trial t;
    struct tfm_tensor *w, *state[4];
    const enum tfm_dtype dtype = _i == 3 ? TFM_DTYPE_BF16 : TFM_DTYPE_F32;

    trial_begin(&t, 4, "adamw refusal %d", _i);
    w = _i == 0 ? trial_parameter(&t, "w", dtype, 2, 3, 4)
                : trial_trainable(&t, "w", dtype, 2, 3, 4);
    for (int i = 0; i < 4; i++)
        state[i] = trial_sum(&t, names[i + 1], _i == 5 && i == 1 ? TFM_DTYPE_F64 : TFM_DTYPE_F32, 2,
                             3, _i == 1 && i == 2 ? 5 : 4);
    hyper = trial_input(&t, "hyper", TFM_DTYPE_F32, 2, _i == 2 ? 7 : 8, 0);
    ck_assert_ptr_null(
        tfm_op_adamw(t.graph, w, state[0], state[1], state[2], hyper, _i == 4 ? state[3] : NULL));
    trial_refused(&t, _i == 0 ? TFM_STATUS_INVALID_ARGUMENT : TFM_STATUS_SHAPE,
                  "adamw|w 'w' [3, 4]|g 'g' [3, 4] f32|hyper 'hyper' [N, ");
}
END_TEST

void tfm__cases_adamw(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "adamw");

    tcase_add_loop_test(tcase, updates, 0, 24);
    tcase_add_test(tcase, one_element_by_hand);
    tcase_add_test(tcase, no_gradient_no_step);
    tcase_add_loop_test(trial_rule_tcase(suite, "adamw rule"), refusals, 0, 6);
}
