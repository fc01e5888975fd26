/* SPDX-License-Identifier: MIT
 * scale_grad: the sweep, and the ends of the range. */
#include <math.h>

#include <tfm/grad.h>

#include "tests/ops/elementwise.h"

static const double factors[] = {3, -0.5}, caps[] = {0, 30, 1};
static double factor, cap;

static struct tfm_tensor *build(struct tfm_graph *graph, struct tfm_tensor *x,
                                struct tfm_tensor *dy)
{
    return tfm_op_scale_grad(graph, x, dy, factor, cap);
}

/* By cosh, as nobody computes it. */
static double naive(double a, double b)
{
    const double c = cap > 0 ? cosh(factor * a / cap) : 1;
    return factor / (c * c) * b;
}

static const struct elementwise scale_grad = {"scale_grad", 2, build, naive, 1};

START_TEST(sweep)
{
    const int kind = _i / ELEMENTWISE_DTYPES;

    factor = factors[kind / 3];
    cap = caps[kind % 3];
    elementwise_sweep(&scale_grad, elementwise_dtype(_i % ELEMENTWISE_DTYPES));
}
END_TEST

/* Fault: infinity gives NaN, or the cap bends where it should not; 1 - tanh(1)^2 = 0.4199743. */
START_TEST(special_values)
{
    static const double x[] = {0, 2, -2, 1e30, -INFINITY, INFINITY};
    static const double dy[] = {3, 1, -1, 5, 5, 5}, want[] = {3, 0.4199743, -0.4199743, 0, 0, 0};
    struct trial t;
    double y[6];

    factor = 1;
    cap = 2;
    ck_assert(elementwise_run(&scale_grad, TFM_DTYPE_F32, 6, x, dy, &t, y));
    for (int i = 0; i < 6; i++)
        ck_assert_msg(fabs(y[i] - want[i]) <= 1e-6, "scale_grad(%g, %g) = %g", x[i], dy[i], y[i]);
    trial_end(&t);
}
END_TEST

/* Fault: a factor or a cap that is none becomes a node. */
START_TEST(no_number)
{
    static const double bad[][2] = {{NAN, 0}, {1, -1}, {1, INFINITY}};
    struct trial t;

    trial_begin(&t, 4, "scale_grad without numbers");
    ck_assert_ptr_null(tfm_op_scale_grad(t.graph, trial_input(&t, "x", TFM_DTYPE_F32, 2, 3, 0),
                                         trial_input(&t, "dy", TFM_DTYPE_F32, 2, 3, 0), bad[_i][0],
                                         bad[_i][1]));
    trial_refused(&t, TFM_STATUS_INVALID_ARGUMENT, "scale_grad|finite");
}
END_TEST

START_TEST(refusals)
{
    elementwise_refusal(&scale_grad, _i);
}
END_TEST

void tfm__cases_scale_grad(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "scale_grad");

    tcase_add_loop_test(tcase, sweep, 0, 6 * ELEMENTWISE_DTYPES);
    tcase_add_test(tcase, special_values);
    tcase = trial_rule_tcase(suite, "scale_grad rule");
    tcase_add_loop_test(tcase, refusals, 0, ELEMENTWISE_REFUSALS);
    tcase_add_loop_test(tcase, no_number, 0, 3);
}
