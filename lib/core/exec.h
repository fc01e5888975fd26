/* SPDX-License-Identifier: MIT
 * Inside an exec: what exec.c (making and running it) and bind.c (inputs and outputs) share. */
#ifndef TFM__CORE_EXEC_H
#define TFM__CORE_EXEC_H

#include <tfm/plan.h>

#include "lib/core/plan.h"

/* What a segment needs of this exec. */
struct tfm__part {
    void *exec;                /* whole-segment backends */
    struct tfm_memory *memory; /* [n_tensors] of the segment */
    struct tfm_memory *slots; /* node by node: inputs and outputs of all nodes, one after another */
};

/* Where the caller has an input or output: in host memory, or in memory of a device of the plan. */
struct tfm__binding {
    void
        *memory; /* host memory that a run copies from or to: the caller's, or `staging`; or NULL */
    void *staging; /* ours: what passes through the host on its way to or from `region` */
    struct tfm_memory region;   /* on `device`, held through `take` of its backend; or {NULL, 0} */
    struct tfm_storage storage; /* of the region */
    size_t bytes;               /* that a run may touch: the tensor at full capacity */
    uint32_t device;
    int direct; /* 1 = kernels of `device` reach the region in place */
};

/* Memory of variables (states, trainable parameters): of one exec, or of several that share it. */
struct tfm__state_buffer {
    atomic_uint holders;
    struct tfm_device *device;
    void *memory;
};

struct tfm_exec {
    struct tfm_plan *plan;
    void **arenas;                      /* [n_devices] */
    struct tfm_memory *states;          /* [n_states]; those of a device share buffers */
    struct tfm__state_buffer **buffers; /* [n_states], the first n_buffers are held: each once */
    uint32_t n_buffers;
    struct tfm__part *parts;
    struct tfm__binding *bindings; /* [n_tensors] by id */
    void *staging;
};

/* ---- variables.c ---- */

/* Memory for all variables of the plan, into an exec whose states[] and buffers[] are there: that of `other`
 * for those that it has too, for the rest its own. States begin as zero, trainable parameters with the
 * values of the weights. other NULL = none. */
enum tfm_status tfm__exec_make_variables(struct tfm_exec *exec, const struct tfm_exec *other,
                                         struct tfm_error *err);
/* Gives up what it holds. */
void tfm__exec_drop_variables(struct tfm_exec *exec);

/* ---- exec.c ---- */

/* Where a tensor lies on a device, for this exec. */
struct tfm_memory tfm__exec_locate(const struct tfm_exec *exec, uint32_t device,
                                   const struct tfm_tensor *tensor);

/* Opens the segments again that touch a root tensor, as it is bound now. After a failure everything is as it
 * was. */
enum tfm_status tfm__exec_reopen(struct tfm_exec *exec, const struct tfm_tensor *root,
                                 struct tfm_error *err);

/* ---- bind.c ---- */

/* Everything that can be wrong with the caller's data is found by check, before any kernel runs. */
enum tfm_status tfm__exec_check_inputs(struct tfm_exec *exec, const struct tfm_rows *rows,
                                       struct tfm_error *err);
enum tfm_status tfm__exec_move_inputs(struct tfm_exec *exec, const struct tfm_rows *rows,
                                      struct tfm_error *err);
enum tfm_status tfm__exec_move_outputs(struct tfm_exec *exec, const struct tfm_rows *rows,
                                       struct tfm_error *err);
/* Releases what the bindings hold; the parts are closed by then. */
void tfm__exec_unbind_all(struct tfm_exec *exec);

/* Bytes of the rows of this run. */
size_t tfm__exec_run_bytes(const struct tfm_tensor *tensor, const struct tfm_rows *rows);

#endif
