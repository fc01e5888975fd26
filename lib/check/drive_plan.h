/* SPDX-License-Identifier: MIT
 * The inside of a plan of the driver: what drive.c runs and tfm__drive_memory.c lays out. */
#ifndef TFM__CHECK_DRIVE_PLAN_H
#define TFM__CHECK_DRIVE_PLAN_H

#include "lib/check/drive.h"
#include "lib/check/drive_host.h"

enum home { HOME_NONE, HOME_WEIGHTS, HOME_ARENA, HOME_STATE, HOMES };

struct region {
    void *buffer;
    size_t bytes;
    unsigned char *image; /* what was uploaded, then what came back */
    unsigned char *expected;
};

struct tfm__drive_plan {
    const struct tfm__drive_backend *backend;
    const struct tfm_graph *graph;
    struct tfm_capacity capacity;
    unsigned flags;
    uint32_t n_tensors, n_nodes;
    enum home *home;   /* [n_tensors], of roots */
    size_t *offset;    /* [n_tensors] in the buffer of its home */
    void **weight;     /* [n_tensors] copies of parameters and buffers at odd addresses */
    void **allocation; /* [n_tensors] what to free for them */
    struct region regions[HOMES];
    size_t workspace_offset;

    struct tfm_weights weights;
    struct tfm_segment segment;
    const struct tfm_node **nodes;
    const struct tfm_tensor **tensors;
    int32_t *index;
    uint8_t *read_later;
    struct tfm_memory *memory; /* [n_tensors of the segment] */
    struct tfm_program program;
    int compiled;
    void *exec;
};

/* Chooses places and allocates the buffers; after compile, which says what needs no memory. */
enum tfm_status tfm__drive_memory_open(struct tfm__drive_plan *plan, struct tfm_error *err);
void tfm__drive_memory_close(struct tfm__drive_plan *plan);
struct tfm_memory tfm__drive_memory_locate(const struct tfm__drive_plan *plan,
                                           const struct tfm_tensor *tensor);

/* Uploads guards, NaN and the values of weights, inputs and states. */
enum tfm_status tfm__drive_memory_upload(struct tfm__drive_plan *plan, void *const *data,
                                         const struct tfm_rows *rows, struct tfm_error *err);
/* Downloads everything, compares what must not have changed, hands out states and outputs. */
enum tfm_status tfm__drive_memory_download(struct tfm__drive_plan *plan, void *const *data,
                                           const struct tfm_rows *rows, struct tfm_error *err);

static inline int tfm__drive_is_weight(const struct tfm_tensor *tensor)
{
    return (tensor->kind == TFM_TENSOR_PARAMETER || tensor->kind == TFM_TENSOR_BUFFER) &&
           !tensor->is_trainable;
}

static inline enum tfm_status tfm__drive_no_memory(struct tfm_error *err)
{
    return tfm_error_set(err, TFM_STATUS_NOMEM, "driver: out of memory");
}

#endif
