/* SPDX-License-Identifier: MIT
 * gelu: the sweep in both forms, the far tails, the values that tell the forms apart. */
#include <math.h>

#include "tests/ops/elementwise.h"

static int tanh_form;

static struct tfm_tensor *build(struct tfm_graph *graph, struct tfm_tensor *a, struct tfm_tensor *b)
{
    (void)b;
    return tfm_op_gelu(graph, a, tanh_form);
}

/* As the paper writes them; the reference uses erfc and a sigmoid. */
static double naive(double a, double b)
{
    (void)b;
    return tanh_form ? a / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (a + 0.044715 * a * a * a)))
                     : a / 2 * (1 + erf(a / sqrt(2)));
}

static const struct elementwise gelu = {"gelu", 1, build, naive, 5};

START_TEST(sweep)
{
    tanh_form = _i / ELEMENTWISE_DTYPES;
    elementwise_sweep(&gelu, elementwise_dtype(_i % ELEMENTWISE_DTYPES));
}
END_TEST

/* Fault: one form is taken for the other; they differ by 1.5e-4 at 1 and 4.1e-4 at -3. */
START_TEST(forms)
{
    static const double x[] = {1, -1, 2, -3, 0.5};
    static const double want[2][5] = {
        {0.841344746, -0.158655254, 1.954499736, -0.004049694, 0.345731231},
        {0.841191991, -0.158808009, 1.954597694, -0.003637392, 0.345714010},
    };
    struct trial t;
    double y[5];

    tanh_form = _i;
    ck_assert(elementwise_run(&gelu, TFM_DTYPE_F32, 5, x, NULL, &t, y));
    trial_expect(&t, want[_i], 5, 1e-6);
    trial_end(&t);
}
END_TEST

/* Fault: x^3 or exp overflows and gives NaN; the tails are not 0 and the identity. */
START_TEST(far_tails)
{
    static const double x[] = {-INFINITY, -1e30, -1e4, -40, 0, 40, 1e4, INFINITY, NAN};
    struct trial t;
    double y[9];

    tanh_form = _i / ELEMENTWISE_DTYPES;
    if (elementwise_run(&gelu, elementwise_dtype(_i % ELEMENTWISE_DTYPES), 9, x, NULL, &t, y)) {
        for (int i = 0; i < 4; i++)
            ck_assert_msg(fabs(y[i]) < 1e-30, "gelu(%g) = %g", x[i], y[i]);
        ck_assert(y[4] == 0 && y[5] == 40 && y[7] == INFINITY && isnan(y[8]));
        ck_assert_double_eq_tol(y[6], 1e4, 32); /* 9984 in bf16 */
    }
    trial_end(&t);
}
END_TEST

/* Fault: an approximation that is right in absolute terms alone; in the tail each digit counts. */
START_TEST(every_digit)
{
    enum { N = 13 * 64 };
    static double x[2 * N], y[2 * N];
    struct trial t;

    tanh_form = 0;
    for (int i = 0; i < 2 * N; i++)
        x[i] = (i - N) / 64.0;
    ck_assert(elementwise_run(&gelu, TFM_DTYPE_F32, 2 * N, x, NULL, &t, y));
    for (int i = 0; i < 2 * N; i++) {
        const double want = x[i] / 2 * erfc(-x[i] / sqrt(2));
        ck_assert_msg(fabs(y[i] - want) <= 1e-6 * fabs(want) + 1e-37, "gelu(%g) = %.9g, not %.9g",
                      x[i], y[i], want);
    }
    trial_end(&t);
}
END_TEST

START_TEST(refusals)
{
    tanh_form = 0;
    elementwise_refusal(&gelu, _i);
}
END_TEST

/* Fault: a third form is taken for one of the two. */
START_TEST(refused_form)
{
    struct trial t;

    trial_begin(&t, 4, "gelu form 2");
    ck_assert_ptr_null(tfm_op_gelu(t.graph, trial_input(&t, "x", TFM_DTYPE_F32, 2, 3, 0), 2));
    trial_refused(&t, TFM_STATUS_INVALID_ARGUMENT, "gelu|tanh_form|'x' [N, 3]");
}
END_TEST

void tfm__cases_gelu(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "gelu"), *rule = trial_rule_tcase(suite, "gelu rule");

    tcase_add_loop_test(tcase, sweep, 0, 2 * ELEMENTWISE_DTYPES);
    tcase_add_loop_test(tcase, forms, 0, 2);
    tcase_add_test(tcase, every_digit);
    tcase_add_loop_test(tcase, far_tails, 0, 2 * ELEMENTWISE_DTYPES);
    tcase_add_loop_test(rule, refusals, 0, ELEMENTWISE_REFUSALS);
    tcase_add_test(rule, refused_form);
}
