/* SPDX-License-Identifier: MIT
 * plan: a graph compiled for a list of devices; immutable, used by any number of threads.
 * exec: what one user of a plan owns (arena, state, kernel objects); one thread at a time. */
#ifndef TFM_PLAN_H
#define TFM_PLAN_H

#include <tfm/backend.h>
#include <tfm/device.h>
#include <tfm/graph.h>
#include <tfm/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tfm_plan;
struct tfm_exec;

/* Each node goes to the first device whose supports() says yes; consecutive nodes of one device form a
 * segment; tensors that cross devices are copied. Freezes graph and weights and holds both.
 *   capacity   upper bounds of every run; rows >= 1; sequences 0 counts as 1
 * UNSUPPORTED: no device takes a node (the text names layer, op and each refusal; STRICT when only
 * TFM_STRICT kept `reference` away); NOT_FOUND: a parameter has no weights; SHAPE, DTYPE: they differ;
 * NOMEM; whatever the backend says. */
TFM_API enum tfm_status tfm_plan_compile(struct tfm_graph *graph, struct tfm_weights *weights,
                                         struct tfm_device *const *devices, size_t n_devices,
                                         const struct tfm_capacity *capacity,
                                         struct tfm_plan **plan, struct tfm_error *err);
/* Execs hold their plan. NULL is fine. */
TFM_API void tfm_plan_destroy(struct tfm_plan *plan);

/* What compile decided: one line of `tfm plan`. */
struct tfm_plan_node {
    const struct tfm_node *node;
    const char *backend; /* "opencl" */
    uint32_t segment;
    int32_t fallback;    /* 1 = an earlier device of the list refused it */
    const char *refusal; /* "opencl: linear: no kernel for ...", or "" */
};

struct tfm_plan_summary {
    uint32_t nodes, segments, fallbacks, device_changes;
    size_t arena_bytes; /* per exec, all devices, workspaces included */
    size_t state_bytes; /* per exec: KV caches, trainable parameters, gradients */
};

TFM_API void tfm_plan_summarize(const struct tfm_plan *plan, struct tfm_plan_summary *summary);
/* Adds the summary of a plan whose exec shares its states with the one of `sum`: the states are those of the larger. */
TFM_API void tfm_plan_summary_add(struct tfm_plan_summary *sum,
                                  const struct tfm_plan_summary *summary);
TFM_API enum tfm_status tfm_plan_describe(const struct tfm_plan *plan, uint32_t node,
                                          struct tfm_plan_node *description);
/* Calls `line` for each line that the backend of a segment has to say about what it compiled; none when it has no
 * "notes-1" extension. OUT_OF_RANGE: there is no such segment. */
TFM_API enum tfm_status tfm_plan_notes(const struct tfm_plan *plan, uint32_t segment,
                                       void (*line)(void *context, const char *text),
                                       void *context);
TFM_API const struct tfm_graph *tfm_plan_graph(const struct tfm_plan *plan);

/* Allocates arena and state (zeroed) and trainable parameters (as the weights hold them), opens the programs, runs once with N = 0. NOMEM, backend. */
TFM_API enum tfm_status tfm_exec_create(struct tfm_plan *plan, struct tfm_exec **exec,
                                        struct tfm_error *err);
/* The same, but the states and trainable parameters that `other` has too, by name, are those of the other exec:
 * one memory, which lives as long as any exec that uses it. So the plans of forward and backward, of
 * the update, of evaluation work on one set of variables. The others begin as in tfm_exec_create. Execs that
 * share are used by one thread at a time, all of them. other NULL = tfm_exec_create.
 * INVALID_ARGUMENT: one of the same name differs in dtype, shape or kind, or is trained there and frozen
 * here; UNSUPPORTED: it lives on another device. */
TFM_API enum tfm_status tfm_exec_create_sharing(struct tfm_plan *plan, struct tfm_exec *other,
                                                struct tfm_exec **exec, struct tfm_error *err);
TFM_API void tfm_exec_destroy(struct tfm_exec *exec); /* NULL is fine */

/* Binds an input or output by name to the caller's memory, read or written by every later run; the
 * memory must hold the tensor at full capacity (bytes is checked). NOT_FOUND, INVALID_ARGUMENT. */
TFM_API enum tfm_status tfm_exec_bind(struct tfm_exec *exec, const char *name, void *memory,
                                      size_t bytes, struct tfm_error *err);

/* Binds an input or output to memory of a device of the plan that belongs to the program, as the extension
 * `extension` of that device's backend takes it; tfm/opencl.h calls it with types. The buffer is retained, and
 * released when the tensor is bound anew or unbound, or with the exec.
 *   memory, bytes   the region: it holds the tensor at full capacity; the offset is a multiple of the
 *                   element size. A run touches the rows of the run only.
 * Kernels of that device use the region in place. Through the host go: I32 inputs whose values are indices
 * (each run downloads and checks them, and kernels read the checked copy), an input that another device of
 * the plan reads too, an output that another device made. The segments that touch the tensor are opened
 * again, which allocates: bind before a loop of runs, and take two execs for two buffers by turns.
 * State cannot be bound: its form on the device is the backend's own.
 * NOT_FOUND: no such input or output; INVALID_ARGUMENT: the region is too small (both numbers), its offset is
 * not aligned, it overlaps another bound one and one of the two is an output, or the backend refuses it;
 * UNSUPPORTED: no device of the plan has the extension; NOMEM. After a failure the tensor is bound as
 * before. */
TFM_API enum tfm_status tfm_exec_bind_memory(struct tfm_exec *exec, const char *name,
                                             const char *extension, struct tfm_memory memory,
                                             size_t bytes, struct tfm_error *err);
/* Takes back either kind of binding: an output stays on the device, an input must be bound again before a
 * run. No error if it was not bound. NOT_FOUND, NOMEM. */
TFM_API enum tfm_status tfm_exec_unbind(struct tfm_exec *exec, const char *name,
                                        struct tfm_error *err);
/* Where an output lies on the device that makes it, for the program to read between runs: the region that it
 * is bound to, else memory of the exec. Borrowed: valid until it is bound anew or the exec goes.
 *   bytes   of the output at full capacity
 * NOT_FOUND: no such output; UNSUPPORTED: the device that makes it has no such extension. */
TFM_API enum tfm_status tfm_exec_memory(const struct tfm_exec *exec, const char *name,
                                        const char *extension, struct tfm_memory *memory,
                                        size_t *bytes, struct tfm_error *err);

/* Runs the rows. Every input must be bound. After a failure outputs are undefined, lengths (the
 * caller's) unchanged and the exec is usable.
 * OUT_OF_RANGE: an id outside its table or a negative position, before any kernel sees it;
 * CONTEXT_FULL: a sequence would pass its cells, or a position its table; INVALID_ARGUMENT: rows do not
 * fit the capacity or each other, or have a past that an attention without caches cannot see. */
TFM_API enum tfm_status tfm_exec_run(struct tfm_exec *exec, const struct tfm_rows *rows,
                                     struct tfm_error *err);

/* Reads or writes a whole state or trainable parameter in its canonical order, [slots, cells, G, d] of a
 * cache. */
TFM_API enum tfm_status tfm_exec_state_read(struct tfm_exec *exec, const char *name, void *memory,
                                            size_t bytes, struct tfm_error *err);
TFM_API enum tfm_status tfm_exec_state_write(struct tfm_exec *exec, const char *name,
                                             const void *memory, size_t bytes,
                                             struct tfm_error *err);

#ifdef __cplusplus
}
#endif
#endif
