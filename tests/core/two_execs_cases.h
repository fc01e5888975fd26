/* SPDX-License-Identifier: MIT
 * Several execs over one plan and one weights object. */
#ifndef TESTS_TWO_EXECS_CASES_H
#define TESTS_TWO_EXECS_CASES_H

/* Runs them on a backend; returns the exit code. */
int two_execs_cases_run(const char *backend);

#endif
