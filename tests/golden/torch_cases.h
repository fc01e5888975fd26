/* SPDX-License-Identifier: MIT
 * Every layer against PyTorch's float64. */
#ifndef TESTS_GOLDEN_TORCH_CASES_H
#define TESTS_GOLDEN_TORCH_CASES_H

/* Runs them on a backend; returns the exit code. */
int torch_cases_run(const char *backend);

#endif
