/* SPDX-License-Identifier: MIT
 * The sweep that every op goes through which computes element by element: lengths, ranks, dtypes, rows,
 * offsets, in place; values that it must not change; what its rule refuses. */
#ifndef TESTS_OPS_ELEMENTWISE_H
#define TESTS_OPS_ELEMENTWISE_H

#include "tests/ops/trial.h"

struct elementwise {
    const char *name;
    int inputs; /* 1 or 2 */
    struct tfm_tensor *(*build)(struct tfm_graph *graph, struct tfm_tensor *a,
                                struct tfm_tensor *b);
    double (*want)(double a, double b); /* another formula than the kernel's, where there is one */
    double size; /* values of `a` lie in [-size, size), those of b in [-1, 1) */
};

enum { ELEMENTWISE_DTYPES = 4 }; /* F32, F16, BF16, F64 */
enum tfm_dtype elementwise_dtype(int i);

/* Fault: a tail is dropped or written past its end, extents beyond the second are left out of the count,
 * the operands change places, a value is rounded twice. */
void elementwise_sweep(const struct elementwise *op, enum tfm_dtype dtype);

/* One row of n values; 0 = the backend refused. trial_end is the caller's. */
int elementwise_run(const struct elementwise *op, enum tfm_dtype dtype, size_t n, const double *a,
                    const double *b, struct trial *trial, double *y);

/* Fault: a shape or dtype that no backend can compute becomes a node. Line i of a table. */
enum { ELEMENTWISE_REFUSALS = 6 };
void elementwise_refusal(const struct elementwise *op, int i);

#endif
