/* SPDX-License-Identifier: MIT
 * The op tests of one backend: a suite for each line of ops.def. An op without a test file does not
 * link. */
#include <check.h>
#include <stdlib.h>

#include <tfm/op.h>

#include "tests/ops/ops_cases.h"
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

int ops_cases_run(const char *backend)
{
    trial_backend_choose(backend);
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
