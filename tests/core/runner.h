/* SPDX-License-Identifier: MIT
 * The main of a test program with one suite: runs it and reports through Check. */
#ifndef TESTS_CORE_RUNNER_H
#define TESTS_CORE_RUNNER_H

#include <check.h>
#include <stdlib.h>

static inline int tests_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static inline TCase *tests_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    return tcase;
}

#endif
