/* SPDX-License-Identifier: MIT
 * gelu_grad: the sweep, and the ends of the range. */
#include <math.h>

#include <tfm/grad.h>

#include "tests/ops/elementwise.h"

static int tanh_form;

static struct tfm_tensor *build(struct tfm_graph *graph, struct tfm_tensor *x,
                                struct tfm_tensor *dy)
{
    return tfm_op_gelu_grad(graph, x, dy, tanh_form);
}

/* The formulas with erf and tanh, as the papers have them. */
static double naive(double a, double b)
{
    const double pi = 3.14159265358979323846, u = sqrt(2 / pi) * (a + 0.044715 * a * a * a);
    const double t = tanh(u), du = sqrt(2 / pi) * (1 + 3 * 0.044715 * a * a);

    return b * (tanh_form ? (1 + t) / 2 + a / 2 * (1 - t * t) * du
                          : (1 + erf(a / sqrt(2))) / 2 + a * exp(-a * a / 2) / sqrt(2 * pi));
}

static const struct elementwise gelu_grad = {"gelu_grad", 2, build, naive, 4};

START_TEST(sweep)
{
    tanh_form = _i / ELEMENTWISE_DTYPES;
    elementwise_sweep(&gelu_grad, elementwise_dtype(_i % ELEMENTWISE_DTYPES));
}
END_TEST

/* Fault: infinity times 0 is NaN, NaN is lost, or the other form is computed: at the minimum of one the slope of
 * the other is not 0. */
START_TEST(special_values)
{
    static const double x[] = {-INFINITY, -1e4, -0.7517915, 0, 1, 100, INFINITY, NAN};
    static const double dy[] = {1, 1, 1, 2, 1, 3, 5, 1};
    static const double want[2][7] = {{0, 0, 0, 1, 1.0833155, 3, 5},
                                      {0, 0, 0.0002885, 1, 1.0829641, 3, 5}};
    struct trial t;
    double y[8];

    tanh_form = _i;
    ck_assert(elementwise_run(&gelu_grad, TFM_DTYPE_F32, 8, x, dy, &t, y));
    for (int i = 0; i < 7; i++)
        ck_assert_msg(fabs(y[i] - want[_i][i]) <= 5e-7, "gelu_grad(%g, %g) = %.7f, not %.7f", x[i],
                      dy[i], y[i], want[_i][i]);
    ck_assert(isnan(y[7]));
    trial_end(&t);
}
END_TEST

/* Fault: a third form is taken for one of the two. */
START_TEST(no_third_form)
{
    struct trial t;

    trial_begin(&t, 4, "gelu_grad tanh_form 2");
    ck_assert_ptr_null(tfm_op_gelu_grad(t.graph, trial_input(&t, "x", TFM_DTYPE_F32, 2, 3, 0),
                                        trial_input(&t, "dy", TFM_DTYPE_F32, 2, 3, 0), 2));
    trial_refused(&t, TFM_STATUS_INVALID_ARGUMENT, "gelu_grad|tanh_form must be 0");
}
END_TEST

START_TEST(refusals)
{
    elementwise_refusal(&gelu_grad, _i);
}
END_TEST

void tfm__cases_gelu_grad(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "gelu_grad");

    tcase_add_loop_test(tcase, sweep, 0, 2 * ELEMENTWISE_DTYPES);
    tcase_add_loop_test(tcase, special_values, 0, 2);
    tcase = trial_rule_tcase(suite, "gelu_grad rule");
    tcase_add_loop_test(tcase, refusals, 0, ELEMENTWISE_REFUSALS);
    tcase_add_test(tcase, no_third_form);
}
