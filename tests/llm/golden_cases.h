/* SPDX-License-Identifier: MIT
 * The real model against the golden files. */
#ifndef TESTS_GOLDEN_CASES_H
#define TESTS_GOLDEN_CASES_H

/* Runs them on a backend; returns the exit code. */
int golden_cases_run(const char *backend);

#endif
