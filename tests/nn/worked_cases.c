/* SPDX-License-Identifier: MIT
 * The suite of the worked numbers. */
#include "tests/nn/worked_cases.h"

#include "tests/nn/net.h"

static Suite *make(void)
{
    Suite *suite = suite_create("worked numbers");
    worked_counts_add(suite);
    worked_values_add(suite);
    worked_positions_add(suite);
    return suite;
}

int worked_cases_run(const char *backend)
{
    return net_main(backend, make);
}
