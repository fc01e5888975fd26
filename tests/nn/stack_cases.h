/* SPDX-License-Identifier: MIT
 * Whole stacks against plain loops, and the properties that they must have. */
#ifndef TESTS_NN_STACK_CASES_H
#define TESTS_NN_STACK_CASES_H

/* Each runs its suite on a backend; returns the exit code. */
int stack_cases_run(const char *backend);
int property_cases_run(const char *backend);

#endif
