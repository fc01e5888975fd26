/* SPDX-License-Identifier: MIT
 * Plays the core for one small graph on one backend, with stricter manners than the core has: guard
 * zones around every tensor, outputs and unused rows full of NaN, inputs compared afterwards,
 * weights at odd addresses, allocations of a warm run counted. Knows nothing of the test framework:
 * every call returns a status and a text. */
#ifndef TESTS_OPS_DRIVE_H
#define TESTS_OPS_DRIVE_H

#include <tfm/graph.h>

/* ---- a backend, opened ---- */

struct drive_backend {
    const struct tfm_backend *table;
    void *device;
    struct tfm_device_caps caps;
    char name[300]; /* "opencl: pthread-skylake-avx512 (Portable Computing Language)" */
};

/* "reference" is linked in; another NAME is NAME.so in a folder of TFM_PLUGIN_PATH, or such a file
 * named there. `opencl` takes the first device of PoCL, or of the platform whose name contains
 * $TFM_TEST_PLATFORM; others device 0.
 * NOT_FOUND: no such module or device here (a reason to skip); any other failure is one. */
enum tfm_status drive_open(const char *name, struct drive_backend *backend, struct tfm_error *err);
void drive_close(struct drive_backend *backend);

/* ---- a graph on it ---- */

enum drive_flags {
    DRIVE_IN_PLACE = 1, /* a node's output takes the memory that ops.def allows */
    DRIVE_ELEMENT_OFFSETS =
        2,           /* tensors lie at odd multiples of their element size instead of 128 */
    DRIVE_WHOLE = 4, /* parallel_for runs in one piece instead of several, last first */
};

struct drive_plan;

/* Compiles the whole graph as one segment, or prepares it for node-by-node runs, lays out the
 * memory and runs once with N = 0. data[id] holds the values of tensor `id`; only parameters and
 * buffers are read here. The graph and the data outlive the plan. UNSUPPORTED: the backend refuses
 * a node (err says which and why). */
enum tfm_status drive_plan_open(const struct drive_backend *backend, const struct tfm_graph *graph,
                                void *const *data, const struct tfm_capacity *capacity,
                                unsigned flags, struct drive_plan **plan, struct tfm_error *err);

/* One run. Inputs and states are read from data[id]; outputs and states are written there, as many
 * rows as `rows` says. data[id] of any other tensor may be NULL. Views share data[id] of their
 * root. INTERNAL: the backend broke a promise (wrote outside its outputs, allocated in a warm run,
 * ...). */
enum tfm_status drive_plan_run(struct drive_plan *plan, void *const *data,
                               const struct tfm_rows *rows, struct tfm_error *err);

void drive_plan_close(struct drive_plan *plan); /* NULL is fine */

/* Bytes of a tensor with `outer` as its outermost extent, and that extent at full capacity. */
size_t drive_bytes(const struct tfm_tensor *tensor, int64_t outer);
int64_t drive_outer(const struct tfm_tensor *tensor, const struct tfm_capacity *capacity);

#endif
