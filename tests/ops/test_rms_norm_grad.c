/* SPDX-License-Identifier: MIT
 * rms_norm_grad: dx, and what it adds to the state of gamma. */
#include "tests/ops/norm_grad.h"

static struct tfm_tensor *without_beta(struct tfm_graph *graph, struct tfm_tensor *x,
                                       struct tfm_tensor *gamma, struct tfm_tensor *dy,
                                       struct tfm_tensor *dgamma, struct tfm_tensor *dbeta,
                                       double eps)
{
    (void)dbeta;
    return tfm_op_rms_norm_grad(graph, x, gamma, dy, dgamma, eps);
}

static const struct norm_grad tested = {"rms_norm_grad", 0, 1, without_beta};

START_TEST(ragged)
{
    norm_grad_ragged(&tested, _i);
}
END_TEST

START_TEST(more_extents)
{
    norm_grad_more_extents(&tested);
}
END_TEST

START_TEST(refusals)
{
    norm_grad_refusal(&tested, _i);
}
END_TEST

void tfm__cases_rms_norm_grad(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "rms_norm_grad");

    tcase_add_loop_test(tcase, ragged, 0, NORM_GRAD_WIDTHS);
    tcase_add_test(tcase, more_extents);
    tcase_add_loop_test(trial_rule_tcase(suite, "rms_norm_grad rule"), refusals, 0,
                        NORM_GRAD_REFUSALS);
}
