/* SPDX-License-Identifier: MIT
 * layer_norm_grad: dx, and what it adds to the states of gamma and beta. */
#include "tests/ops/norm_grad.h"

/* A vector of one has no variance: its gradient is what rounding leaves of 0. */
static const struct norm_grad tested = {"layer_norm_grad", 1, 2, tfm_op_layer_norm_grad};

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

void tfm__cases_layer_norm_grad(Suite *suite)
{
    TCase *tcase = trial_tcase(suite, "layer_norm_grad");

    tcase_add_loop_test(tcase, ragged, 0, NORM_GRAD_WIDTHS);
    tcase_add_test(tcase, more_extents);
    tcase_add_loop_test(trial_rule_tcase(suite, "layer_norm_grad rule"), refusals, 0,
                        NORM_GRAD_REFUSALS);
}
