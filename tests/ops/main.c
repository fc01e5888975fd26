/* SPDX-License-Identifier: MIT
 * The op tests of one backend: TEST_BACKEND of the build, else the first argument, else
 * $TFM_TEST_BACKEND, else reference. An op of ops.def without a suite does not link; one whose suite
 * has no test fails. CK_RUN_SUITE=<stem> runs a single op. Exit code 77 = that backend is not here. */
#include <check.h>
#include <stdlib.h>

#include <tfm/op.h>

#include "tests/ops/trial.h"
#include "tests/skip.h"

/* tests/ops/test_<stem>.c: adds the tests of one op, all on the backend under test. */
#define TFM_OP(id, NAME, stem, in_min, in_max, outputs, rows, in_place, diff, nmse, minor) \
    void tfm__cases_##stem(Suite *suite);
#include <tfm/ops.def>
#undef TFM_OP

static const struct {
    const char *stem;
    void (*add)(Suite *suite);
} ops[] = {
#define TFM_OP(id, NAME, stem, in_min, in_max, outputs, rows, in_place, diff, nmse, minor) \
    {#stem, tfm__cases_##stem},
#include <tfm/ops.def>
#undef TFM_OP
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : getenv("TFM_TEST_BACKEND");

#ifdef TEST_BACKEND
    name = TEST_BACKEND;
#endif
    trial_backend_choose(name && *name ? name : "reference");
    if (!tests_ask(trial_backend_present))
        return tests_skip("the backend under test is not here");

    SRunner *runner = srunner_create(NULL);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        Suite *suite = suite_create(ops[i].stem);
        ops[i].add(suite);
        srunner_add_suite(runner, suite);
    }
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
