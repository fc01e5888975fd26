/* SPDX-License-Identifier: MIT
 * What the kernels of the reference backend share. They define what is right: plain loops, every
 * dtype through the same source, sums in double in an order that depends on the shapes alone. */
#ifndef TFM__REFERENCE_H
#define TFM__REFERENCE_H

#include <tfm/backend.h>

/* Values that are converted to double at a time; a multiple of every block. */
enum { TFM__REFERENCE_CHUNK = 256 };

/* One node on the rows of one run. Outputs may be the memory of the input that ops.def names. */
struct tfm__reference_call {
    const struct tfm_host *host;
    const struct tfm_node *node;
    const struct tfm_memory *inputs, *outputs;
    const struct tfm_rows *rows;
    struct tfm_error *err;
};

#define TFM_OP(id, NAME, stem, in_min, in_max, outputs, rows, in_place, diff, nmse, minor) \
    enum tfm_status tfm__reference_##stem(const struct tfm__reference_call *call);
#include <tfm/ops.def>
#undef TFM_OP

static inline const void *tfm__reference_input(const struct tfm__reference_call *call, uint32_t i)
{
    return (const unsigned char *)call->inputs[i].buffer + call->inputs[i].offset;
}

/* A state that the op changes, or NULL if that input is absent. */
static inline void *tfm__reference_state(const struct tfm__reference_call *call, uint32_t i)
{
    const int there = i < call->node->n_inputs && call->node->inputs[i];
    return there ? (unsigned char *)call->inputs[i].buffer + call->inputs[i].offset : NULL;
}

static inline void *tfm__reference_output(const struct tfm__reference_call *call, uint32_t i)
{
    return (unsigned char *)call->outputs[i].buffer + call->outputs[i].offset;
}

/* A tensor [N, ..., D] as vectors over its last extent: D, and how many there are in this run. */
static inline size_t tfm__reference_width(const struct tfm_tensor *tensor)
{
    return (size_t)(tensor->rank > 1 ? tensor->shape[tensor->rank - 1] : 1);
}

static inline size_t tfm__reference_vectors(const struct tfm_tensor *tensor,
                                            const struct tfm_rows *rows)
{
    return (size_t)(tfm_tensor_rows(tensor, rows) * tfm_tensor_row_elements(tensor)) /
           tfm__reference_width(tensor);
}

/* Splits n values into chunks: the number of them, and the length of one. */
static inline size_t tfm__reference_chunks(size_t n)
{
    return (n + TFM__REFERENCE_CHUNK - 1) / TFM__REFERENCE_CHUNK;
}

static inline size_t tfm__reference_length(size_t n, size_t first)
{
    return n - first < TFM__REFERENCE_CHUNK ? n - first : TFM__REFERENCE_CHUNK;
}

/* Value i of an I32 tensor, which may be unaligned. */
int32_t tfm__reference_i32(const void *data, size_t i);

/* OUT_OF_RANGE, or CONTEXT_FULL for a position past the end, unless all n values lie in [0, limit) or
 * are a -1 that is allowed.
 * The core checks the same before a run; this keeps a wrong caller from reading outside the table. */
enum tfm_status tfm__reference_check_ids(const struct tfm__reference_call *call, uint32_t input,
                                         size_t n, int64_t limit);

#endif
