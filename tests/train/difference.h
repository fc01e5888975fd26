/* SPDX-License-Identifier: MIT
 * Gradients against central differences: a graph in F64 on `reference`, whose loss is the sum of y times a
 * fixed seed. */
#ifndef TESTS_TRAIN_DIFFERENCE_H
#define TESTS_TRAIN_DIFFERENCE_H

#include "tests/nn/net.h"

enum { DIFFERENCE_ROWS = 5, DIFFERENCE_OUT = 3 };

/* An input [N, d1, d2] F64 (0 ends the shape) whose gradient is compared. */
struct tfm_tensor *difference_input(struct net *net, const char *name, int64_t d1, int64_t d2);
/* Indices [N]; they take all values below their limit, and -1 if that is none. */
struct tfm_tensor *difference_ids(struct net *net, const char *name);
/* A trainable parameter F64 with values in [-1, 1); d1 0 = rank 1. */
struct tfm_tensor *difference_parameter(struct net *net, const char *name, int64_t d0, int64_t d1);

/* Trains every parameter of the graph; those of rank 1, which start as 0 or 1, get values of their own. */
void difference_train_all(struct net *net);

/* Appends the backward pass for y; UNSUPPORTED: an op has no gradient. */
enum tfm_status difference_backward(struct net *net, struct tfm_tensor *y, struct tfm_error *err);
/* Compiles, runs, and compares the gradient of each element of every trainable parameter and input with
 * (L(v + eps) - L(v - eps)) / 2 eps, eps 1e-6, within 1e-5 + 1e-3 of its size. */
void difference_check(struct net *net, const char *what);

#endif
