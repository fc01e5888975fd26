/* SPDX-License-Identifier: MIT
 * What a training may not have in memory, for every backend. */
#ifndef TESTS_TRAIN_MEMORY_CASES_H
#define TESTS_TRAIN_MEMORY_CASES_H

/* The exit code of a test program. */
int memory_cases_run(const char *backend);

#endif
