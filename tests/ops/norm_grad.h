/* SPDX-License-Identifier: MIT
 * The cases that rms_norm_grad and layer_norm_grad have in common: dx, and what is added to the states of gamma and
 * beta. */
#ifndef TESTS_OPS_NORM_GRAD_H
#define TESTS_OPS_NORM_GRAD_H

#include <tfm/grad.h>

#include "tests/ops/trial.h"

struct norm_grad {
    const char *name;
    int centered;  /* 1 = the mean is taken away, and there may be a dbeta */
    int64_t least; /* width */
    /* as tfm_op_layer_norm_grad; dbeta is not used by an op that has none */
    struct tfm_tensor *(*op)(struct tfm_graph *graph, struct tfm_tensor *x,
                             struct tfm_tensor *gamma, struct tfm_tensor *dy,
                             struct tfm_tensor *dgamma, struct tfm_tensor *dbeta, double eps);
};

/* Fault: a tail is dropped or written past its end; a state is overwritten, or needed though it is absent; the order
 * of a sum depends on how rows are shared. Width i of a table. */
enum { NORM_GRAD_WIDTHS = 7 };
void norm_grad_ragged(const struct norm_grad *op, int i);
/* Fault: extents between the rows and the last are left out of the count. */
void norm_grad_more_extents(const struct norm_grad *op);
/* Fault: operands that do not fit become a node; a parameter is taken for a state. Line i of a table. */
enum { NORM_GRAD_REFUSALS = 6 };
void norm_grad_refusal(const struct norm_grad *op, int i);

#endif
