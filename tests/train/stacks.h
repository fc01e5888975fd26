/* SPDX-License-Identifier: MIT
 * Stacks of two blocks without caches, small ones, of every kind of block, norm, FFN and positions. */
#ifndef TESTS_TRAIN_STACKS_H
#define TESTS_TRAIN_STACKS_H

#include <tfm/nn.h>

enum { TRAINING_STACKS = 7 };

/* Stack i with weights of `dtype`; returns its name. */
const char *training_stack(int i, enum tfm_dtype dtype, struct tfm_nn_decoder *config);

#endif
