/* SPDX-License-Identifier: MIT
 * Weights that move between backends, and the memory of attention. */
#ifndef TESTS_NN_WEIGHTS_CASES_H
#define TESTS_NN_WEIGHTS_CASES_H

/* Runs its suite on a backend; returns the exit code. */
int weights_cases_run(const char *backend);

#endif
