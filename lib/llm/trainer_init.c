/* SPDX-License-Identifier: MIT
 * Where the parameters of a decoder start: at what the caller gives, or from nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/llm/trainer_internal.h"

struct initial {
    const struct tfm_graph *graph;
    int64_t layers;
    uint64_t seed;
    struct tfm_weights *weights;
    struct tfm_error *err;
};

static int ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* 1 if an embedding reads the tensor as its table. */
static int is_table(const struct tfm_graph *graph, const struct tfm_tensor *tensor)
{
    for (uint32_t n = 0; n < tfm_graph_node_count(graph); n++) {
        const struct tfm_node *node = tfm_graph_node(graph, n);
        if (node->op == TFM_OP_EMBEDDING && node->inputs[0] == tensor)
            return 1;
    }
    return 0;
}

/* 0 = as tfm_nn_init_weights starts it. */
static double deviation(const struct initial *initial, const struct tfm_tensor *tensor)
{
    if (is_table(initial->graph, tensor))
        return 0.02;
    if (ends_with(tensor->name, ".attn.o.weight") || ends_with(tensor->name, ".ffn.down.weight"))
        return 0.02 / sqrt(2.0 * (double)initial->layers);
    return 0;
}

static enum tfm_status start(void *context, const struct tfm_tensor *tensor)
{
    const struct initial *initial = context;
    const double std = deviation(initial, tensor);
    enum tfm_dtype dtype;
    struct tfm_weight weight;

    if (std == 0 ||
        tfm_weights_get(initial->weights, tensor->name, &dtype, &weight, NULL) == TFM_STATUS_OK)
        return TFM_STATUS_OK;
    const size_t bytes = tfm__trainer_bytes(tensor);
    void *values = malloc(bytes);
    if (!values)
        return tfm_error_set(initial->err, TFM_STATUS_NOMEM, "trainer: \"%s\": out of memory",
                             tensor->name);
    enum tfm_status status =
        tfm_nn_init_truncated_normal(initial->seed, tensor->name, std, 3, tensor->dtype,
                                     tfm__trainer_elements(tensor), values, initial->err);
    if (status == TFM_STATUS_OK)
        status = tfm_weights_set(initial->weights, tensor->name, tensor->dtype, tensor->rank,
                                 tensor->shape, values, bytes, initial->err);
    free(values);
    return status;
}

enum tfm_status tfm_trainer_initialize(const struct tfm_graph *graph, int64_t layers, uint64_t seed,
                                       struct tfm_weights *weights, struct tfm_error *err)
{
    struct initial initial = {graph, layers > 0 ? layers : 1, seed, weights, err};
    enum tfm_status status;

    tfm_error_clear(err);
    status = tfm_graph_check(graph, err);
    if (status == TFM_STATUS_OK)
        status = tfm_graph_parameters(graph, start, &initial);
    return status == TFM_STATUS_OK ? tfm_nn_init_weights(graph, seed, weights, err) : status;
}

/* ---- what the caller gives ---- */

struct giving {
    struct tfm_trainer *trainer;
    struct tfm_error *err;
};

static enum tfm_status give(void *context, const struct tfm_tensor *tensor)
{
    const struct giving *g = context;
    struct tfm_weight weight;
    enum tfm_dtype dtype;

    if (tfm_weights_get(g->trainer->given, tensor->name, &dtype, &weight, NULL) != TFM_STATUS_OK)
        return TFM_STATUS_OK;
    const size_t n = tfm__trainer_elements(tensor), bytes = tfm__trainer_bytes(tensor);
    const struct tfm_dtype_info *info = tfm_dtype_info(dtype);
    if (weight.bytes != n / info->block * info->bytes)
        return tfm_error_set(g->err, TFM_STATUS_SHAPE,
                             "train: \"%s\" has %zu values in the model and %zu bytes of %s are "
                             "given",
                             tensor->name, n, weight.bytes, tfm_dtype_name(dtype));
    float *values = malloc(n * sizeof *values);
    void *rounded = malloc(bytes);
    enum tfm_status status = TFM_STATUS_NOMEM;
    if (values && rounded) {
        tfm_dtype_to_f32(dtype, weight.data, 0, n, values);
        tfm_dtype_from_f32(tensor->dtype, values, rounded, 0, n);
        status = tfm_weights_set(g->trainer->weights, tensor->name, tensor->dtype, tensor->rank,
                                 tensor->shape, rounded, bytes, g->err);
    } else
        tfm_error_set(g->err, status, "train: \"%s\": out of memory", tensor->name);
    free(values);
    free(rounded);
    return status;
}

enum tfm_status tfm__trainer_give(struct tfm_trainer *trainer, const struct tfm_graph *graph,
                                  struct tfm_error *err)
{
    struct giving giving = {trainer, err};

    return trainer->given ? tfm_graph_parameters(graph, give, &giving) : TFM_STATUS_OK;
}
