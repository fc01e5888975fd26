/* SPDX-License-Identifier: MIT
 * The worked numbers of the course notes on the building blocks of a Transformer, each as a named row:
 * what layers hold (worked_counts.c) and what they compute (worked_values.c, worked_positions.c). */
#ifndef TESTS_NN_WORKED_CASES_H
#define TESTS_NN_WORKED_CASES_H

#include <check.h>

void worked_counts_add(Suite *suite);
void worked_values_add(Suite *suite);
void worked_positions_add(Suite *suite);

/* Runs all of them on a backend; returns the exit code. */
int worked_cases_run(const char *backend);

#endif
