/* SPDX-License-Identifier: MIT
 * swiglu: every float dtype, odd lengths, in place, guards, offsets; case A09. */
#include <math.h>

#include "tests/ops/trial.h"

static const enum tfm_dtype dtypes[] = {TFM_DTYPE_F32, TFM_DTYPE_F16, TFM_DTYPE_BF16,
                                        TFM_DTYPE_F64};
static struct tfm_tensor *gate, *up;

/* silu(g) = g/2 (1 + tanh(g/2)): another form than the reference's. */
static void naive(const struct trial *trial, const struct tfm_rows *rows, double *want)
{
    const size_t n = (size_t)(tfm_tensor_row_elements(gate) * rows->n);

    for (size_t i = 0; i < n; i++) {
        const double g = trial->values[gate->id][i];
        want[i] = g / 2 * (1 + tanh(g / 2)) * trial->values[up->id][i];
    }
}

static void build(struct trial *t, uint32_t rows, enum tfm_dtype dtype, int64_t width)
{
    trial_begin(t, rows, "swiglu %s [N, %lld]", tfm_dtype_name(dtype), (long long)width);
    gate = trial_input(t, "gate", dtype, 2, width, 0);
    up = trial_input(t, "up", dtype, 2, width, 0);
    trial_output(t, tfm_op_swiglu(t->graph, gate, up));
}

/* Fault: gate and up change places, or a tail is dropped or written past its end. */
START_TEST(lengths)
{
    static const int64_t widths[] = {1, 3, 7, 31, 33, 65, 576, 1536};

    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        struct trial t;
        build(&t, w < 6 ? 129 : 33, dtypes[_i], widths[w]);
        const size_t n = trial_count(&t, gate);
        for (size_t i = 0; i < n; i++) { /* into both tails of the sigmoid */
            double g;
            trial_get(&t, gate, i, 1, &g);
            g *= 6;
            trial_set(&t, gate, i, 1, &g);
        }
        trial_check_rows(&t, naive);
        trial_end(&t);
    }
}
END_TEST

/* Fault: extents beyond the second are left out of the count. */
START_TEST(more_extents)
{
    struct trial t;

    trial_begin(&t, 33, "swiglu %s [N, 3, 7]", tfm_dtype_name(dtypes[_i]));
    gate = trial_input(&t, "gate", dtypes[_i], 3, 3, 7);
    up = trial_input(&t, "up", dtypes[_i], 3, 3, 7);
    trial_output(&t, tfm_op_swiglu(t.graph, gate, up));
    trial_check_rows(&t, naive);
    trial_end(&t);
}
END_TEST

/* A09. Fault: exp overflows and gives NaN, or the far tails are not 0 and the identity. */
START_TEST(a09_far_gates)
{
    static const double gates[] = {-INFINITY, -1e30, -1e4, -100, -89, -20, 0, 20, 88, 1e4};
    const struct tfm_rows rows = trial_rows(1, 0);
    struct trial t;

    build(&t, 1, dtypes[_i], 10);
    trial_set(&t, gate, 0, 10, gates);
    trial_set_all(&t, up, 1);
    if (trial_open(&t, 0)) {
        double y[10], g[10];
        trial_run(&t, &rows, TFM_STATUS_OK);
        trial_get(&t, t.output, 0, 10, y);
        trial_get(&t, gate, 0, 10, g);
        for (int i = 0; i < 5; i++)
            ck_assert_msg(fabs(y[i]) < 1e-30, "silu(%g) = %g", g[i], y[i]);
        const double smallest = dtypes[_i] == TFM_DTYPE_F16 ? 0x1p-24 : 0;
        ck_assert_double_eq_tol(y[5], -20 / (1 + exp(20.0)), 4.2e-10 + smallest);
        ck_assert(y[6] == 0);
        for (int i = 7; i < 10; i++)
            ck_assert_double_eq_tol(y[i], g[i], 1e-6 * g[i]);
    }
    trial_end(&t);
}
END_TEST

/* Fault: silu is some other gate (sigmoid, gelu, relu). silu(1) = 0.7310586, silu(-2) = -0.2384058. */
START_TEST(hand_computed)
{
    static const double g[] = {1, -2, 0.5}, u[] = {2, 3, -1};
    static const double want[] = {1.4621172, -0.7152174, -0.3112297};
    const struct tfm_rows rows = trial_rows(1, 0);
    struct trial t;

    build(&t, 1, TFM_DTYPE_F32, 3);
    trial_set(&t, gate, 0, 3, g);
    trial_set(&t, up, 0, 3, u);
    ck_assert(trial_open(&t, 0));
    trial_run(&t, &rows, TFM_STATUS_OK);
    trial_expect(&t, want, 3, 1e-6);
    trial_end(&t);
}
END_TEST

/* Fault: a shape or dtype that no backend can compute becomes a node. */
START_TEST(refusals)
{
    static const struct {
        enum tfm_dtype gate, up;
        int rank;
        int64_t width_gate, width_up;
        enum tfm_status status;
        const char *words;
    } rows[] = {
        {TFM_DTYPE_F32, TFM_DTYPE_F32, 2, 3, 4, TFM_STATUS_SHAPE,
         "swiglu|'gate' [N, 3]|'up' [N, 4]"},
        {TFM_DTYPE_F32, TFM_DTYPE_F32, 3, 3, 4, TFM_STATUS_SHAPE, "[N, 3, 2]|[N, 4, 2]"},
        {TFM_DTYPE_F32, TFM_DTYPE_BF16, 2, 3, 3, TFM_STATUS_DTYPE, "f32|bf16"},
        {TFM_DTYPE_I32, TFM_DTYPE_I32, 2, 3, 3, TFM_STATUS_DTYPE, "i32"},
    };
    struct trial t;

    trial_begin(&t, 4, "swiglu refusal %d", _i);
    gate = trial_input(&t, "gate", rows[_i].gate, rows[_i].rank, rows[_i].width_gate, 2);
    up = trial_input(&t, "up", rows[_i].up, rows[_i].rank, rows[_i].width_up, 2);
    ck_assert_ptr_null(tfm_op_swiglu(t.graph, gate, up));
    trial_refused(&t, rows[_i].status, rows[_i].words);
}
END_TEST

void tfm__cases_swiglu(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "swiglu");

    tcase_add_loop_test(tcase, lengths, 0, 4);
    tcase_add_loop_test(tcase, more_extents, 0, 4);
    tcase_add_loop_test(tcase, a09_far_gates, 0, 4);
    tcase_add_test(tcase, hand_computed);
    tcase_add_loop_test(trial_rule_tcase(suite, "swiglu rule"), refusals, 0, 4);
}
