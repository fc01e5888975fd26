/* SPDX-License-Identifier: MIT
 * The decoder of tfm/nn.h once more, in plain loops in double, over one whole sequence: no graph, no ops,
 * no cache, no chunks. What stacks are compared with. */
#ifndef TESTS_NN_NAIVE_H
#define TESTS_NN_NAIVE_H

#include "tests/nn/net.h"

/* Logits [n, vocab] of ids[n] at positions 0..n-1, with the weights of the net (compiled). */
void naive_decoder(const struct net *net, const struct tfm_nn_decoder *config, const int32_t *ids,
                   int n, double *logits);

#endif
