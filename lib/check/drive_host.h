/* SPDX-License-Identifier: MIT
 * What the driver gives a backend in place of the library: its own host table and weights. */
#ifndef TFM__CHECK_DRIVE_HOST_H
#define TFM__CHECK_DRIVE_HOST_H

#include <tfm/graph.h>

struct tfm_weights {
    const struct tfm_graph *graph;
    void *const *data; /* [tensors of the graph] each at an odd address */
    int compiling;     /* lookups are allowed during compile only */
    void *private_data;
    void (*destroy)(void *data);
};

const struct tfm_host *tfm__drive_host(void);

/* Calls of host->alloc since the process began, and blocks that were not given back yet. */
uint64_t tfm__drive_allocations(void);
int64_t tfm__drive_blocks(void);

/* Of the calls of host->alloc from now on, number `call` (from 0) finds no memory; < 0 = none does.
 * tfm__drive_failed says whether it came to that since the last call with a number. */
void tfm__drive_fail(int64_t call);
int tfm__drive_failed(void);

/* Where the backend's messages go: NULL = standard error from WARN up. */
void tfm__drive_log(void (*sink)(enum tfm_log_level level, const char *backend, const char *text));

/* 1 = parallel_for runs its body once; 0 = in several pieces of different length, last first, so
 * that a body that needs the order or the whole shows. */
void tfm__drive_parallel_whole(int whole);

#endif
