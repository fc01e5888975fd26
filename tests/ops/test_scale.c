/* SPDX-License-Identifier: MIT
 * scale: the sweep with several factors and soft caps, and factors and caps that are none. */
#include <math.h>

#include "tests/ops/elementwise.h"

/* sqrt(576): how Gemma-like models scale embeddings of that width; a third is no binary fraction. */
static const double factors[] = {24, 1.0 / 3, -0.5, 0, 1};
static double factor;
/* The inputs reach 4 or so: from a cap that is hardly felt to one that makes nearly a sign of everything.
 * 0 = none. */
static const double caps[] = {30, 5, 1, 0.125};
static double cap;

static struct tfm_tensor *build(struct tfm_graph *graph, struct tfm_tensor *a, struct tfm_tensor *b)
{
    (void)b;
    return cap > 0 ? tfm_op_softcap(graph, a, cap) : tfm_op_scale(graph, a, factor);
}

/* The cap by exponentials, as nobody computes it. */
static double naive(double a, double b)
{
    (void)b;
    return cap > 0 ? cap * (expm1(2 * a / cap) / (expm1(2 * a / cap) + 2)) : a * factor;
}

static const struct elementwise scale = {"scale", 1, build, naive, 1};

START_TEST(sweep)
{
    cap = 0;
    factor = factors[_i / ELEMENTWISE_DTYPES];
    elementwise_sweep(&scale, elementwise_dtype(_i % ELEMENTWISE_DTYPES));
}
END_TEST

START_TEST(capped_sweep)
{
    cap = caps[_i / ELEMENTWISE_DTYPES];
    elementwise_sweep(&scale, elementwise_dtype(_i % ELEMENTWISE_DTYPES));
}
END_TEST

/* Fault: the cap is not reached, is passed, or exp makes NaN of it far out; small values lose digits; the
 * worked value tanh(1) = 0.761594156. */
START_TEST(capped_values)
{
    static const double x[] = {2, -2, 1e-6, -1e30, INFINITY, -INFINITY, NAN, 0, 60};
    static const double want[] = {1.523188312, -1.523188312, 1e-6, -2, 2, -2, NAN, 0, 2};
    struct trial t;
    double y[9];

    cap = 2;
    ck_assert(elementwise_run(&scale, TFM_DTYPE_F32, 9, x, NULL, &t, y));
    for (int i = 0; i < 9; i++)
        ck_assert_msg(isnan(want[i]) ? isnan(y[i]) : fabs(y[i] - want[i]) <= 2e-7 * fabs(want[i]),
                      "cap 2 of %g is %.9g", x[i], y[i]);
    trial_end(&t);
}
END_TEST

/* Fault: a factor of 0 is taken for "none", or infinity and NaN do not survive. */
START_TEST(special_values)
{
    static const double x[] = {5, INFINITY, NAN, -3};
    struct trial t;
    double y[4];

    cap = 0;
    factor = 0;
    if (elementwise_run(&scale, elementwise_dtype(_i), 4, x, NULL, &t, y))
        ck_assert(y[0] == 0 && isnan(y[1]) && isnan(y[2]) && y[3] == 0);
    trial_end(&t);
    factor = 2;
    if (elementwise_run(&scale, elementwise_dtype(_i), 4, x, NULL, &t, y))
        ck_assert(y[0] == 10 && y[1] == INFINITY && isnan(y[2]) && y[3] == -6);
    trial_end(&t);
}
END_TEST

START_TEST(refusals)
{
    factor = 2;
    elementwise_refusal(&scale, _i);
}
END_TEST

/* Fault: a factor that poisons every value becomes a node. */
START_TEST(refused_factors)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    struct trial t;

    trial_begin(&t, 4, "scale by %g", bad[_i]);
    ck_assert_ptr_null(
        tfm_op_scale(t.graph, trial_input(&t, "x", TFM_DTYPE_F32, 2, 3, 0), bad[_i]));
    trial_refused(&t, TFM_STATUS_INVALID_ARGUMENT, "scale|factor|'x' [N, 3]");
}
END_TEST

/* Fault: a cap that nothing can be divided by becomes a node. */
START_TEST(refused_caps)
{
    static const double bad[] = {NAN, INFINITY, -30};
    struct trial t;

    trial_begin(&t, 4, "cap %g", bad[_i]);
    ck_assert_ptr_null(
        tfm_op_softcap(t.graph, trial_input(&t, "x", TFM_DTYPE_F32, 2, 3, 0), bad[_i]));
    trial_refused(&t, TFM_STATUS_INVALID_ARGUMENT, "scale|softcap|'x' [N, 3]");
}
END_TEST

void tfm__cases_scale(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "scale"), *rule = trial_rule_tcase(suite, "scale rule");

    tcase_add_loop_test(tcase, sweep, 0, 5 * ELEMENTWISE_DTYPES);
    tcase_add_loop_test(tcase, capped_sweep, 0, 4 * ELEMENTWISE_DTYPES);
    tcase_add_test(tcase, capped_values);
    tcase_add_loop_test(tcase, special_values, 0, ELEMENTWISE_DTYPES);
    tcase_add_loop_test(rule, refusals, 0, ELEMENTWISE_REFUSALS);
    tcase_add_loop_test(rule, refused_factors, 0, 3);
    tcase_add_loop_test(rule, refused_caps, 0, 3);
}
