/* SPDX-License-Identifier: MIT
 * Plays the core for one small graph on one backend, with stricter manners than the core has: guard
 * zones around every tensor, outputs and unused rows full of NaN, inputs compared afterwards,
 * weights at odd addresses, allocations of a warm run counted. `tfm check-backend` and the op tests
 * stand on it; it knows nothing of a test framework: every call returns a status and a text. */
#ifndef TFM__CHECK_DRIVE_H
#define TFM__CHECK_DRIVE_H

#include <tfm/graph.h>

/* ---- a backend, opened ---- */

struct tfm__drive_backend {
    const struct tfm_backend *table;
    void *device;
    struct tfm_device_caps caps;
    char name[300]; /* "opencl: pthread-skylake-avx512 (Portable Computing Language)" */
};

/* Opens device `index` of a probe's list. The table outlives the device. */
enum tfm_status tfm__drive_device_open(const struct tfm_backend *table,
                                       const struct tfm_probe *probe, uint32_t index,
                                       struct tfm__drive_backend *backend, struct tfm_error *err);
void tfm__drive_close(struct tfm__drive_backend *backend);

/* ---- a graph on it ---- */

enum tfm__drive_flags {
    TFM__DRIVE_IN_PLACE = 1, /* a node's output takes the memory that ops.def allows */
    TFM__DRIVE_ELEMENT_OFFSETS =
        2,                /* tensors lie at odd multiples of their element size instead of 128 */
    TFM__DRIVE_WHOLE = 4, /* parallel_for runs in one piece instead of several, last first */
};

struct tfm__drive_plan;

/* Compiles the whole graph as one segment, or prepares it for node-by-node runs, lays out the
 * memory and runs once with N = 0. data[id] holds the values of tensor `id`; only parameters and
 * buffers are read here. The graph and the data outlive the plan. UNSUPPORTED: the backend refuses
 * a node (err says which and why). */
enum tfm_status tfm__drive_plan_open(const struct tfm__drive_backend *backend,
                                     const struct tfm_graph *graph, void *const *data,
                                     const struct tfm_capacity *capacity, unsigned flags,
                                     struct tfm__drive_plan **plan, struct tfm_error *err);

/* A state or a trainable parameter. */
static inline int tfm__drive_is_variable(const struct tfm_tensor *tensor)
{
    return !tensor->view_of && (tensor->kind == TFM_TENSOR_STATE || tensor->is_trainable);
}

/* One run. Inputs and variables are read from data[id]; outputs and variables are written there, as many
 * rows as `rows` says. data[id] of any other tensor may be NULL. Views share data[id] of their
 * root. INTERNAL: the backend broke a promise (wrote outside its outputs, allocated in a warm run,
 * ...). */
enum tfm_status tfm__drive_plan_run(struct tfm__drive_plan *plan, void *const *data,
                                    const struct tfm_rows *rows, struct tfm_error *err);

void tfm__drive_plan_close(struct tfm__drive_plan *plan); /* NULL is fine */

/* Nanoseconds of one run, without transfers: the fastest of as many runs as fit into `seconds`, at
 * least three. Values are those of the last tfm__drive_plan_run. */
enum tfm_status tfm__drive_plan_time(struct tfm__drive_plan *plan, const struct tfm_rows *rows,
                                     double seconds, double *nanoseconds, struct tfm_error *err);

/* Bytes of a tensor with `outer` as its outermost extent. */
size_t tfm__drive_bytes(const struct tfm_tensor *tensor, int64_t outer);

#endif
