/* SPDX-License-Identifier: MIT
 * silu: the sweep, the far tails of case A09, the minimum. */
#include <math.h>

#include "tests/ops/elementwise.h"

static struct tfm_tensor *build(struct tfm_graph *graph, struct tfm_tensor *a, struct tfm_tensor *b)
{
    (void)b;
    return tfm_op_silu(graph, a);
}

/* silu(x) = x/2 (1 + tanh(x/2)): another form than the reference's. */
static double naive(double a, double b)
{
    (void)b;
    return a / 2 * (1 + tanh(a / 2));
}

static const struct elementwise silu = {"silu", 1, build, naive, 6};

START_TEST(sweep)
{
    elementwise_sweep(&silu, elementwise_dtype(_i));
}
END_TEST

/* A09. Fault: exp overflows and gives NaN, or the far tails are not 0 and the identity. */
START_TEST(a09_far_tails)
{
    static const double x[] = {-INFINITY, -1e30, -1e4, -100, -89, -20, 0, 20, 88, 1e4, INFINITY};
    const enum tfm_dtype dtype = elementwise_dtype(_i);
    struct trial t;
    double y[11];

    if (elementwise_run(&silu, dtype, 11, x, NULL, &t, y)) {
        for (int i = 0; i < 5; i++)
            ck_assert_msg(fabs(y[i]) < 1e-30, "silu(%g) = %g", x[i], y[i]);
        /* -4.12e-8 to one per mille, or the nearest that f16 has */
        ck_assert_double_eq_tol(y[5], -20 / (1 + exp(20.0)),
                                dtype == TFM_DTYPE_F16    ? 0x1p-25
                                : dtype == TFM_DTYPE_BF16 ? 0x1p-9 * 4.2e-8
                                                          : 4.2e-11);
        ck_assert(y[6] == 0 && y[10] == INFINITY);
        ck_assert(fabs(y[7] - 20) <= 1e-6 && fabs(y[8] - 88) <= 1e-5);
        ck_assert_double_eq_tol(y[9], 1e4, dtype == TFM_DTYPE_BF16 ? 32 : 1e-2);
    }
    trial_end(&t);
}
END_TEST

/* Fault: another gate. The minimum is -0.278465 at -1.278465, so it is neither a probability nor
 * positive; silu(1) = 0.731059, silu(-2) = -0.238406. */
START_TEST(minimum)
{
    static const double x[] = {-1.278465, -1.288465, -1.268465, 1, -2};
    struct trial t;
    double y[5];

    ck_assert(elementwise_run(&silu, TFM_DTYPE_F32, 5, x, NULL, &t, y));
    ck_assert_double_eq_tol(y[0], -0.278465, 1e-6);
    ck_assert(y[1] > y[0] && y[2] > y[0]);
    ck_assert_double_eq_tol(y[3], 0.731059, 1e-6);
    ck_assert_double_eq_tol(y[4], -0.238406, 1e-6);
    trial_end(&t);
}
END_TEST

START_TEST(refusals)
{
    elementwise_refusal(&silu, _i);
}
END_TEST

void tfm__cases_silu(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "silu");

    tcase_add_loop_test(tcase, sweep, 0, ELEMENTWISE_DTYPES);
    tcase_add_loop_test(tcase, a09_far_tails, 0, ELEMENTWISE_DTYPES);
    tcase_add_test(tcase, minimum);
    tcase_add_loop_test(trial_rule_tcase(suite, "silu rule"), refusals, 0, ELEMENTWISE_REFUSALS);
}
