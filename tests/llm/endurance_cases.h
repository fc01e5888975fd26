/* SPDX-License-Identifier: MIT
 * Sessions that are run often, and one that runs for long. */
#ifndef TESTS_ENDURANCE_CASES_H
#define TESTS_ENDURANCE_CASES_H

/* Runs them on a backend; returns the exit code. */
int endurance_cases_run(const char *backend);

#endif
