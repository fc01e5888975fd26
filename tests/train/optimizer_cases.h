/* SPDX-License-Identifier: MIT
 * Cases of the optimizer, for every backend. */
#ifndef TESTS_TRAIN_OPTIMIZER_CASES_H
#define TESTS_TRAIN_OPTIMIZER_CASES_H

/* The main of a program that runs them on one backend. */
int optimizer_cases_run(const char *backend);

#endif
