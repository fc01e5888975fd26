/* SPDX-License-Identifier: MIT
 * silu_grad: the sweep, and the ends of the range. */
#include <math.h>

#include <tfm/grad.h>

#include "tests/ops/elementwise.h"

/* Another formula than the reference's. */
static double naive(double a, double b)
{
    const double t = tanh(a / 2);
    return b * ((1 + t) / 2 + a / 4 * (1 - t * t));
}

static const struct elementwise silu_grad = {"silu_grad", 2, tfm_op_silu_grad, naive, 6};

START_TEST(sweep)
{
    elementwise_sweep(&silu_grad, elementwise_dtype(_i));
}
END_TEST

/* Fault: infinity times 0 is NaN, or the slope at the minimum is not 0. */
START_TEST(special_values)
{
    static const double x[] = {-INFINITY, -1e4, -1.278465, 0, 1, 100, 1e4, INFINITY};
    static const double dy[] = {1, 1, 1, 2, 1, 3, 4, 5};
    static const double want[] = {0, 0, 0, 1, 0.9276705, 3, 4, 5};
    struct trial t;
    double y[8];

    if (elementwise_run(&silu_grad, elementwise_dtype(_i), 8, x, dy, &t, y)) {
        for (int i = 0; i < 8; i++)
            ck_assert_msg(fabs(y[i] - want[i]) <= (elementwise_dtype(_i) == TFM_DTYPE_F64 ||
                                                           elementwise_dtype(_i) == TFM_DTYPE_F32
                                                       ? 1e-6
                                                       : 4e-3),
                          "silu_grad(%g, %g) = %g, not %g", x[i], dy[i], y[i], want[i]);
    }
    trial_end(&t);
}
END_TEST

START_TEST(refusals)
{
    elementwise_refusal(&silu_grad, _i);
}
END_TEST

void tfm__cases_silu_grad(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "silu_grad");

    tcase_add_loop_test(tcase, sweep, 0, ELEMENTWISE_DTYPES);
    tcase_add_loop_test(tcase, special_values, 0, ELEMENTWISE_DTYPES);
    tcase_add_loop_test(trial_rule_tcase(suite, "silu_grad rule"), refusals, 0,
                        ELEMENTWISE_REFUSALS);
}
