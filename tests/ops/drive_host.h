/* SPDX-License-Identifier: MIT
 * What the driver gives a backend in place of the library: its own host table and weights. */
#ifndef TESTS_OPS_DRIVE_HOST_H
#define TESTS_OPS_DRIVE_HOST_H

#include <tfm/graph.h>

struct tfm_weights {
    const struct tfm_graph *graph;
    void *const *data; /* [tensors of the graph] each at an odd address */
    int compiling;     /* lookups are allowed during compile only */
    void *private_data;
    void (*destroy)(void *data);
};

const struct tfm_host *drive_host(void);

/* Calls of host->alloc since the process began. */
uint64_t drive_allocations(void);

/* 1 = parallel_for runs its body once; 0 = in several pieces of different length, last first, so
 * that a body that needs the order or the whole shows. */
void drive_parallel_whole(int whole);

#endif
