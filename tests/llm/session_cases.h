/* SPDX-License-Identifier: MIT
 * Sessions on tiny models. */
#ifndef TESTS_SESSION_CASES_H
#define TESTS_SESSION_CASES_H

/* Runs them on a backend; returns the exit code. */
int session_cases_run(const char *backend);

#endif
