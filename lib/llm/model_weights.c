/* SPDX-License-Identifier: MIT
 * The weights of an opened model as F32, to train them further. */
#include <stdlib.h>

#include <tfm/graph.h>

#include "lib/core/checked.h"
#include "lib/llm/flat_decoder.h"
#include "lib/llm/model_internal.h"

struct copying {
    const struct tfm_model *model;
    struct tfm_weights *weights;
    struct tfm_error *err;
};

static enum tfm_status copy(void *context, const struct tfm_tensor *tensor)
{
    const struct copying *c = context;
    struct tfm_weight weight;
    enum tfm_dtype dtype;
    size_t n = 1, bytes;
    enum tfm_status status =
        tfm_weights_get(c->model->weights, tensor->name, &dtype, &weight, c->err);

    if (status != TFM_STATUS_OK)
        return status;
    for (int32_t i = 0; i < tensor->rank; i++)
        if (tfm__mul_size(n, (size_t)tensor->shape[i], &n))
            n = SIZE_MAX;
    float *values = tfm__mul_size(n, sizeof *values, &bytes) ? NULL : malloc(bytes);
    if (!values)
        return tfm_error_set(c->err, TFM_STATUS_NOMEM, "%s: out of memory for \"%s\"",
                             tfm_model_path(c->model), tensor->name);
    tfm_dtype_to_f32(dtype, weight.data, 0, n, values);
    status = tfm_weights_set(c->weights, tensor->name, TFM_DTYPE_F32, tensor->rank, tensor->shape,
                             values, bytes, c->err);
    free(values);
    return status;
}

enum tfm_status tfm_model_weights_f32(const struct tfm_model *model, struct tfm_nn_decoder *decoder,
                                      struct tfm_weights *weights, struct tfm_error *err)
{
    struct copying copying = {model, weights, err};
    struct tfm_nn_decoder stored, flat;
    struct tfm_graph *graph = NULL;
    enum tfm_status status;

    tfm_error_clear(err);
    tfm_model_decoder(model, &stored);
    status = tfm__flat_decoder(&stored, tfm_model_path(model), &flat, err);
    if (status == TFM_STATUS_OK)
        status = tfm_graph_create(&graph, err);
    if (status == TFM_STATUS_OK) {
        tfm_nn_decoder(graph, &flat);
        status = tfm_graph_check(graph, err);
    }
    if (status == TFM_STATUS_OK)
        status = tfm_graph_parameters(graph, copy, &copying);
    if (status == TFM_STATUS_OK)
        *decoder = flat;
    tfm_graph_destroy(graph);
    return status;
}
