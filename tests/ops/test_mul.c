/* SPDX-License-Identifier: MIT
 * mul: the sweep, and products at the ends of the range. */
#include <math.h>

#include "tests/ops/elementwise.h"

static struct tfm_tensor *build(struct tfm_graph *graph, struct tfm_tensor *a, struct tfm_tensor *b)
{
    return tfm_op_mul(graph, a, b);
}

static double naive(double a, double b)
{
    return a * b;
}

static const struct elementwise mul = {"mul", 2, build, naive, 3};

START_TEST(sweep)
{
    elementwise_sweep(&mul, elementwise_dtype(_i));
}
END_TEST

/* Fault: the sign of zero, infinity or NaN is lost, or an f16 product saturates instead of becoming
 * infinite. */
START_TEST(special_values)
{
    static const double a[] = {0, INFINITY, INFINITY, NAN, 256, 3};
    static const double b[] = {-1, -2, 0, 1, 256, 7};
    struct trial t;
    double y[6];

    if (elementwise_run(&mul, elementwise_dtype(_i), 6, a, b, &t, y)) {
        ck_assert(y[0] == 0 && signbit(y[0]) && y[1] == -INFINITY);
        ck_assert(isnan(y[2]) && isnan(y[3]) && y[5] == 21);
        ck_assert(y[4] == (elementwise_dtype(_i) == TFM_DTYPE_F16 ? INFINITY : 65536));
    }
    trial_end(&t);
}
END_TEST

START_TEST(refusals)
{
    elementwise_refusal(&mul, _i);
}
END_TEST

void tfm__cases_mul(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "mul");

    tcase_add_loop_test(tcase, sweep, 0, ELEMENTWISE_DTYPES);
    tcase_add_loop_test(tcase, special_values, 0, ELEMENTWISE_DTYPES);
    tcase_add_loop_test(trial_rule_tcase(suite, "mul rule"), refusals, 0, ELEMENTWISE_REFUSALS);
}
