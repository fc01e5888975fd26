/* SPDX-License-Identifier: MIT
 * Initial values for every parameter of a graph, by what reads it first, and the tables that its layers
 * know how to make. */
#include <math.h>

#include <tfm/init.h>

#include "lib/core/alloc.h"
#include "lib/core/checked.h"

enum fill { FILL_NOTHING, FILL_LINEAR, FILL_EMBEDDING, FILL_ONE, FILL_ZERO };

/* What input number i of an op starts as. */
static const enum fill fills[TFM_OP_LIMIT][TFM_MAX_INPUTS] = {
    [TFM_OP_EMBEDDING] = {FILL_EMBEDDING},
    [TFM_OP_LINEAR] = {FILL_NOTHING, FILL_LINEAR, FILL_ZERO},
    [TFM_OP_CROSS_ENTROPY] = {FILL_NOTHING, FILL_LINEAR},
    [TFM_OP_RMS_NORM] = {FILL_NOTHING, FILL_ONE},
    [TFM_OP_LAYER_NORM] = {FILL_NOTHING, FILL_ONE, FILL_ZERO},
    [TFM_OP_GQA_ATTENTION] = {[5] = FILL_ZERO},
};

struct init {
    const struct tfm_graph *graph;
    uint64_t seed;
    struct tfm_weights *weights;
    struct tfm_error *err;
};

/* How the first node that reads the tensor uses it. */
static enum fill fill_of(const struct tfm_graph *graph, const struct tfm_tensor *tensor)
{
    for (uint32_t n = 0; n < tfm_graph_node_count(graph); n++) {
        const struct tfm_node *node = tfm_graph_node(graph, n);
        for (uint32_t i = 0; i < node->n_inputs; i++) {
            const struct tfm_tensor *input = node->inputs[i];
            if (input && (input == tensor || input->view_of == tensor))
                return fills[node->op][i];
        }
    }
    return FILL_NOTHING;
}

static void constant(const struct tfm_tensor *tensor, size_t n, double value, void *values)
{
    enum { CHUNK = 256 };
    double chunk[CHUNK];

    for (size_t i = 0; i < CHUNK; i++)
        chunk[i] = value;
    for (size_t first = 0; first < n; first += CHUNK)
        tfm_dtype_from_f64(tensor->dtype, chunk, values, first,
                           n - first < CHUNK ? n - first : CHUNK);
}

static enum tfm_status fill_parameter(const struct init *init, const struct tfm_tensor *tensor,
                                      size_t n, void *values)
{
    const enum fill fill = fill_of(init->graph, tensor);
    double std = 1;

    if (fill == FILL_NOTHING)
        return tfm_error_set(init->err, TFM_STATUS_NOT_FOUND,
                             "init: no layer says what parameter \"%s\" starts as; set it",
                             tensor->name);
    if (fill == FILL_ONE || fill == FILL_ZERO) {
        constant(tensor, n, fill == FILL_ONE ? 1 : 0, values);
        return TFM_STATUS_OK;
    }
    if (fill == FILL_LINEAR) /* [out, in] */
        std = sqrt(2.0 / ((double)tensor->shape[0] + (double)tensor->shape[1]));
    return tfm_nn_init_truncated_normal(init->seed, tensor->name, std, 3, tensor->dtype, n, values,
                                        init->err);
}

static enum tfm_status give(void *context, const struct tfm_tensor *tensor)
{
    const struct init *init = context;
    const struct tfm_dtype_info *info = tfm_dtype_info(tensor->dtype);
    enum tfm_dtype dtype;
    struct tfm_weight weight;
    size_t n = 1, bytes;

    if (tfm_weights_get(init->weights, tensor->name, &dtype, &weight, NULL) == TFM_STATUS_OK)
        return TFM_STATUS_OK;
    for (int32_t i = 0; i < tensor->rank; i++) {
        if (tfm__mul_size(n, (size_t)tensor->shape[i], &n))
            return tfm_error_set(init->err, TFM_STATUS_NOMEM, "init: \"%s\" is too large",
                                 tensor->name);
    }
    void *values = tfm__mul_size(n / info->block, info->bytes, &bytes) ? NULL : tfm__alloc(bytes);
    if (!values)
        return tfm_error_set(init->err, TFM_STATUS_NOMEM, "init: \"%s\": out of memory",
                             tensor->name);
    enum tfm_status status =
        tensor->kind == TFM_TENSOR_BUFFER
            ? tfm_graph_buffer_values(init->graph, tensor, values, bytes, init->err)
            : fill_parameter(init, tensor, n, values);
    if (status == TFM_STATUS_OK)
        status = tfm_weights_set(init->weights, tensor->name, tensor->dtype, tensor->rank,
                                 tensor->shape, values, bytes, init->err);
    tfm__free(values);
    return status;
}

enum tfm_status tfm_nn_init_weights(const struct tfm_graph *graph, uint64_t seed,
                                    struct tfm_weights *weights, struct tfm_error *err)
{
    struct init init = {graph, seed, weights, err};
    enum tfm_status status = tfm_graph_check(graph, err);

    if (status == TFM_STATUS_OK)
        status = tfm_graph_parameters(graph, give, &init);
    if (status == TFM_STATUS_OK)
        status = tfm_graph_buffers(graph, give, &init);
    return status;
}
