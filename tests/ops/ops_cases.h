/* SPDX-License-Identifier: MIT
 * Every op of ops.def on one backend. */
#ifndef TESTS_OPS_OPS_CASES_H
#define TESTS_OPS_OPS_CASES_H

/* Runs the cases and returns the exit code of the program, 77 when that backend is not here.
 * CK_RUN_SUITE=<stem> runs those of one op. */
int ops_cases_run(const char *backend);

#endif
