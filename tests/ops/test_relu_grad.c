/* SPDX-License-Identifier: MIT
 * relu_grad: the sweep, and the ends of the range. */
#include <math.h>

#include <tfm/grad.h>

#include "tests/ops/elementwise.h"

/* Another formula than the reference's. */
static double naive(double a, double b)
{
    return a > 0 ? b : 0;
}

static const struct elementwise relu_grad = {"relu_grad", 2, tfm_op_relu_grad, naive, 4};

START_TEST(sweep)
{
    elementwise_sweep(&relu_grad, elementwise_dtype(_i));
}
END_TEST

/* Fault: the gradient at 0 is 1 or one half, or that of NaN hides. */
START_TEST(special_values)
{
    static const double x[] = {-INFINITY, -1, -0.0, 0, 0x1p-24, 1, INFINITY, NAN};
    static const double dy[] = {1, 2, 3, 4, 5, -6, 7, 8};
    static const double want[] = {0, 0, 0, 0, 5, -6, 7, 8};
    struct trial t;
    double y[8];

    if (elementwise_run(&relu_grad, elementwise_dtype(_i), 8, x, dy, &t, y)) {
        for (int i = 0; i < 8; i++)
            ck_assert_msg(fabs(y[i] - want[i]) <= 0, "relu_grad(%g, %g) = %g, not %g", x[i], dy[i],
                          y[i], want[i]);
    }
    trial_end(&t);
}
END_TEST

START_TEST(refusals)
{
    elementwise_refusal(&relu_grad, _i);
}
END_TEST

void tfm__cases_relu_grad(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "relu_grad");

    tcase_add_loop_test(tcase, sweep, 0, ELEMENTWISE_DTYPES);
    tcase_add_loop_test(tcase, special_values, 0, ELEMENTWISE_DTYPES);
    tcase_add_loop_test(trial_rule_tcase(suite, "relu_grad rule"), refusals, 0,
                        ELEMENTWISE_REFUSALS);
}
