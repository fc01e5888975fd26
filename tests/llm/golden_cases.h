/* SPDX-License-Identifier: MIT
 * Real models against their golden files. */
#ifndef TESTS_GOLDEN_CASES_H
#define TESTS_GOLDEN_CASES_H

/* SmolLM2, which must have been fetched, on a backend; returns the exit code. */
int golden_cases_run(const char *backend);
/* The model in the box, which is always there. */
int golden_cases_run_box(const char *backend);

#endif
