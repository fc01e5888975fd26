/* SPDX-License-Identifier: MIT
 * The ops on `reference`, against the oracles of the cases; or on the backend that the first argument or
 * $TFM_TEST_BACKEND names, against the reference. */
#include <stdlib.h>

#include "tests/ops/ops_cases.h"

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : getenv("TFM_TEST_BACKEND");

    return ops_cases_run(name && *name ? name : "reference");
}
