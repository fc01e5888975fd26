/* SPDX-License-Identifier: MIT
 * What the nodes of rms_norm_grad and layer_norm_grad have in common: with and without the sums, which hold
 * something already. */
#ifndef TFM__CHECK_NORM_GRAD_H
#define TFM__CHECK_NORM_GRAD_H

#include <tfm/grad.h>

#include "lib/check/op.h"

enum { TFM__CHECK_NORM_GRADS = 14, TFM__CHECK_NORM_GRADS_LARGE = 2 };

/* As tfm_op_layer_norm_grad; dbeta is not used by an op that has none. */
typedef struct tfm_tensor *tfm__check_norm_grad(struct tfm_graph *graph, struct tfm_tensor *x,
                                                struct tfm_tensor *gamma, struct tfm_tensor *dy,
                                                struct tfm_tensor *dgamma, struct tfm_tensor *dbeta,
                                                double eps);

/* least: the smallest width of a sample. */
void tfm__check_build_norm_grad(struct tfm__sample *sample, uint32_t i, tfm__check_norm_grad *op,
                                int64_t least, int has_beta);
void tfm__check_large_norm_grad(struct tfm__sample *sample, uint32_t i, tfm__check_norm_grad *op,
                                int has_beta);
double tfm__check_norm_grad_operations(const struct tfm__sample *sample,
                                       const struct tfm_rows *rows);

#endif
