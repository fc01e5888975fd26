/* SPDX-License-Identifier: MIT
 * Gradients beside central differences, in F64 on the reference: for every element of every input and trainable
 * parameter (eps 1e-6, atol 1e-5, rtol 1e-3). Uses Check. */
#ifndef TESTS_OPS_DIFFERENCES_H
#define TESTS_OPS_DIFFERENCES_H

#include <tfm/grad.h>

struct differences {
    const char *what; /* named in every failure */
    /* Builds the graph and returns what is differentiated, times fixed pseudo-random numbers and summed. */
    struct tfm_tensor *(*build)(struct tfm_graph *graph, const void *context);
    /* Value i of an I32 input or buffer; NULL = there is none. */
    int32_t (*index)(const char *name, size_t i, const void *context);
    const void *context;
    uint32_t rows, sequences;
    const int32_t *start; /* [sequences] */
    double size;          /* values of inputs and parameters lie in [-size, size); 0 = 1 */
};

/* Fails the test where a gradient differs, or where one that should be there is not. */
void differences_check(const struct differences *d);

#endif
