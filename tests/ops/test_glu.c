/* SPDX-License-Identifier: MIT
 * glu: the sweep, saturated gates, hand-computed values. */
#include <math.h>

#include "tests/ops/elementwise.h"

static struct tfm_tensor *build(struct tfm_graph *graph, struct tfm_tensor *a, struct tfm_tensor *b)
{
    return tfm_op_glu(graph, a, b);
}

/* sigmoid(g) = (1 + tanh(g/2)) / 2: another form than the reference's. */
static double naive(double a, double b)
{
    return (1 + tanh(a / 2)) / 2 * b;
}

static const struct elementwise glu = {"glu", 2, build, naive, 6};

START_TEST(sweep)
{
    elementwise_sweep(&glu, elementwise_dtype(_i));
}
END_TEST

/* Fault: exp overflows and gives NaN, or the gate is that of swiglu. */
START_TEST(far_gates)
{
    static const double gate[] = {-INFINITY, -1e30, -1e4, -100, 0, 20, 1e4, INFINITY, NAN};
    static const double up[] = {3, 3, 3, 3, 3, 3, 3, 3, 3};
    struct trial t;
    double y[9];

    if (elementwise_run(&glu, elementwise_dtype(_i), 9, gate, up, &t, y)) {
        for (int i = 0; i < 4; i++)
            ck_assert_msg(fabs(y[i]) < 1e-30, "glu(%g) = %g", gate[i], y[i]);
        ck_assert(y[4] == 1.5);
        for (int i = 5; i < 8; i++)
            ck_assert_double_eq_tol(y[i], 3, 1e-6);
        ck_assert(isnan(y[8]));
    }
    trial_end(&t);
}
END_TEST

/* Fault: gate and up change places. sigmoid(1) = 0.7310586, sigmoid(-2) = 0.1192029. */
START_TEST(hand_computed)
{
    static const double g[] = {1, -2, 0.5}, u[] = {2, 3, -1};
    static const double want[] = {1.4621172, 0.3576088, -0.6224593};
    struct trial t;
    double y[3];

    ck_assert(elementwise_run(&glu, TFM_DTYPE_F32, 3, g, u, &t, y));
    trial_expect(&t, want, 3, 1e-6);
    trial_end(&t);
}
END_TEST

START_TEST(refusals)
{
    elementwise_refusal(&glu, _i);
}
END_TEST

void tfm__cases_glu(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "glu");

    tcase_add_loop_test(tcase, sweep, 0, ELEMENTWISE_DTYPES);
    tcase_add_loop_test(tcase, far_gates, 0, ELEMENTWISE_DTYPES);
    tcase_add_test(tcase, hand_computed);
    tcase_add_loop_test(trial_rule_tcase(suite, "glu rule"), refusals, 0, ELEMENTWISE_REFUSALS);
}
