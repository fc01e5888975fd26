/* SPDX-License-Identifier: MIT
 * sigmoid_grad: the sweep, and the ends of the range. */
#include <math.h>

#include <tfm/grad.h>

#include "tests/ops/elementwise.h"

/* Another formula than the reference's. */
static double naive(double a, double b)
{
    const double c = cosh(a / 2);
    return b / (4 * c * c);
}

static const struct elementwise sigmoid_grad = {"sigmoid_grad", 2, tfm_op_sigmoid_grad, naive, 6};

START_TEST(sweep)
{
    elementwise_sweep(&sigmoid_grad, elementwise_dtype(_i));
}
END_TEST

/* Fault: infinity gives NaN, or the slope is not even. */
START_TEST(special_values)
{
    static const double x[] = {-INFINITY, -1e4, -2, 0, 2, 1e4, INFINITY};
    static const double dy[] = {1, 1, 1, 2, -1, 3, 4};
    static const double want[] = {0, 0, 0.1049936, 0.5, -0.1049936, 0, 0};
    struct trial t;
    double y[7];

    if (elementwise_run(&sigmoid_grad, elementwise_dtype(_i), 7, x, dy, &t, y)) {
        for (int i = 0; i < 7; i++)
            ck_assert_msg(fabs(y[i] - want[i]) <= (elementwise_dtype(_i) == TFM_DTYPE_F64 ||
                                                           elementwise_dtype(_i) == TFM_DTYPE_F32
                                                       ? 1e-6
                                                       : 4e-3),
                          "sigmoid_grad(%g, %g) = %g, not %g", x[i], dy[i], y[i], want[i]);
    }
    trial_end(&t);
}
END_TEST

START_TEST(refusals)
{
    elementwise_refusal(&sigmoid_grad, _i);
}
END_TEST

void tfm__cases_sigmoid_grad(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "sigmoid_grad");

    tcase_add_loop_test(tcase, sweep, 0, ELEMENTWISE_DTYPES);
    tcase_add_loop_test(tcase, special_values, 0, ELEMENTWISE_DTYPES);
    tcase_add_loop_test(trial_rule_tcase(suite, "sigmoid_grad rule"), refusals, 0,
                        ELEMENTWISE_REFUSALS);
}
