/* SPDX-License-Identifier: MIT
 * relu: the sweep, and the values around zero. */
#include <math.h>

#include "tests/ops/elementwise.h"

static struct tfm_tensor *build(struct tfm_graph *graph, struct tfm_tensor *a, struct tfm_tensor *b)
{
    (void)b;
    return tfm_op_relu(graph, a);
}

static double naive(double a, double b)
{
    (void)b;
    return (a + fabs(a)) / 2;
}

static const struct elementwise relu = {"relu", 1, build, naive, 4};

START_TEST(sweep)
{
    elementwise_sweep(&relu, elementwise_dtype(_i));
}
END_TEST

/* Fault: NaN becomes 0 and hides, the smallest values are flushed, infinity is not kept. */
START_TEST(special_values)
{
    static const double x[] = {-INFINITY, -1, -0.0, 0, 0x1p-24, 1, INFINITY, NAN};
    static const double want[] = {0, 0, 0, 0, 0x1p-24, 1, INFINITY};
    struct trial t;
    double y[8];

    if (elementwise_run(&relu, elementwise_dtype(_i), 8, x, NULL, &t, y)) {
        for (int i = 0; i < 7; i++)
            ck_assert_msg(y[i] == want[i], "relu(%g) = %g", x[i], y[i]);
        ck_assert(isnan(y[7]));
    }
    trial_end(&t);
}
END_TEST

START_TEST(refusals)
{
    elementwise_refusal(&relu, _i);
}
END_TEST

void tfm__cases_relu(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "relu");

    tcase_add_loop_test(tcase, sweep, 0, ELEMENTWISE_DTYPES);
    tcase_add_loop_test(tcase, special_values, 0, ELEMENTWISE_DTYPES);
    tcase_add_loop_test(trial_rule_tcase(suite, "relu rule"), refusals, 0, ELEMENTWISE_REFUSALS);
}
