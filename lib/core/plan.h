/* SPDX-License-Identifier: MIT
 * What compile decides and an exec carries out. Immutable after compile. */
#ifndef TFM__CORE_PLAN_H
#define TFM__CORE_PLAN_H

#include <stdatomic.h>

#include <tfm/plan.h>

#include "lib/core/device.h"
#include "lib/core/graph.h"
#include "lib/core/rows.h"
#include "lib/core/weights.h"

/* Memory of one root tensor on one device. */
enum tfm__home {
    TFM__HOME_NONE,    /* not on this device, or fused away */
    TFM__HOME_ARENA,   /* `offset` in the arena of each exec */
    TFM__HOME_STATE,   /* state buffer `offset` of each exec (an index, not bytes) */
    TFM__HOME_WEIGHTS, /* `memory`, owned by the weights */
    TFM__HOME_PACKED,  /* with the program: whole-segment backends took it at compile */
};

struct tfm__place {
    enum tfm__home home;
    int32_t first, last; /* nodes between which it lives; -1 = from the start of a run */
    size_t bytes;        /* at full capacity */
    size_t offset;
    struct tfm_memory memory;
};

/* Before a segment runs: bring a root tensor from the device that made it. */
struct tfm__copy {
    uint32_t tensor;
    uint32_t from, to; /* devices */
};

struct tfm__segment {
    uint32_t device, first_node;
    int32_t whole; /* 1 = compiled, 0 = node by node */
    struct tfm_segment public;
    struct tfm_program program;
    struct tfm__copy *copies;
    uint32_t n_copies;
};

/* A state or a trainable parameter. */
struct tfm__state {
    const struct tfm_tensor *tensor;
    uint32_t device;
    size_t bytes;
};

struct tfm_plan {
    atomic_uint holders;
    struct tfm_graph *graph;
    struct tfm_weights *weights;
    struct tfm_capacity capacity;
    struct tfm_device **devices;
    uint32_t n_devices, n_nodes, n_tensors;

    uint32_t *node_device; /* [n_nodes] index into devices */
    char **refusals;       /* [n_nodes], NULL = none */
    uint32_t *node_segment;

    struct tfm__segment *segments;
    uint32_t n_segments;

    struct tfm__place *places; /* [n_devices][n_tensors], by root */
    int32_t *maker;            /* [n_tensors] device that produces a root; -1 = input or none */
    size_t *arena, *workspace; /* [n_devices] bytes; the workspace lies behind the arena */
    struct tfm__state *states;
    uint32_t n_states;
    struct tfm__rows_needs needs;
    size_t staging; /* largest cross-device copy */
};

static inline struct tfm__place *tfm__plan_place(const struct tfm_plan *plan, uint32_t device,
                                                 const struct tfm_tensor *tensor)
{
    return &plan->places[(size_t)device * plan->n_tensors + tfm__tensor_root(tensor)->id];
}

/* Lives in memory of each exec, or of several that share it: states and trainable parameters. */
static inline int tfm__plan_is_variable(const struct tfm_tensor *root)
{
    return root->kind == TFM_TENSOR_STATE || root->is_trainable;
}

static inline int tfm__plan_is_weight(const struct tfm_tensor *root)
{
    return (root->kind == TFM_TENSOR_PARAMETER || root->kind == TFM_TENSOR_BUFFER) &&
           !root->is_trainable;
}

/* Places of all tensors on the devices of their nodes, makers, states, needs of rows. In places.c. */
enum tfm_status tfm__plan_places(struct tfm_plan *plan, struct tfm_error *err);
/* What a later segment or the caller reads must be kept until then; copies between devices. In places.c. */
enum tfm_status tfm__plan_connect(struct tfm_plan *plan, struct tfm_error *err);

/* Gives every place of home ARENA its offset, and sets plan->arena. In layout.c. */
enum tfm_status tfm__plan_layout(struct tfm_plan *plan, struct tfm_error *err);

#endif
