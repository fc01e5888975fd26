/* SPDX-License-Identifier: MIT
 * The named table of the fake backend: proof that it is the one that ran. */
#ifndef TESTS_PLUGINS_FAKE_H
#define TESTS_PLUGINS_FAKE_H

#include <stddef.h>

#define FAKE_COUNTERS "fake.counters-1"

struct fake_counters {
    size_t nodes;    /* run_node calls */
    size_t elements; /* computed in them */
};

#endif
