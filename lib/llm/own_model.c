/* SPDX-License-Identifier: MIT
 * A decoder of any kind, from a folder as tfm_export_to_folder writes it: config.json says every setting, tensors have
 * the names of the decoder's parameters. */
#include <stdlib.h>
#include <string.h>

#include <tfm/init.h>

#include "lib/core/checked.h"
#include "lib/llm/gguf_internal.h"
#include "lib/llm/model_internal.h"

struct reading {
    struct tfm_model *model;
    struct tfm_error *err;
};

static enum tfm_status no_memory(const struct reading *r)
{
    return tfm_error_set(r->err, TFM_STATUS_NOMEM, "%s: out of memory",
                         tfm_gguf_path(r->model->gguf));
}

/* What the file stores in another type than the decoder computes with: norms of a narrow folder. */
static enum tfm_status set_converted(const struct reading *r, const struct tfm_tensor *parameter,
                                     const struct tfm_gguf_tensor *stored)
{
    const size_t n = (size_t)tfm_tensor_elements(parameter);
    size_t exact = 0, bytes = 0;
    float *values = tfm__mul_size(n, sizeof *values, &exact) ? NULL : malloc(exact);
    void *made =
        tfm__mul_size(n, tfm_dtype_info(parameter->dtype)->bytes, &bytes) ? NULL : malloc(bytes);
    enum tfm_status status = values && made ? TFM_STATUS_OK : no_memory(r);

    if (status == TFM_STATUS_OK) {
        tfm_dtype_to_f32(stored->dtype, stored->data, 0, n, values);
        tfm_dtype_from_f32(parameter->dtype, values, made, 0, n);
        status = tfm_weights_set(r->model->weights, parameter->name, parameter->dtype,
                                 parameter->rank, parameter->shape, made, bytes, r->err);
    }
    free(values);
    free(made);
    return status;
}

static int is_float(enum tfm_dtype dtype)
{
    return tfm_dtype_info(dtype)->dtype_class == TFM_DTYPE_FLOAT;
}

static enum tfm_status add(void *context, const struct tfm_tensor *parameter)
{
    const struct reading *r = context;
    const struct tfm_gguf_tensor *stored = tfm__model_find(r->model, parameter->name);
    const enum tfm_status status = tfm__model_check(r->model, parameter->name, stored,
                                                    parameter->rank, parameter->shape, r->err);

    if (status != TFM_STATUS_OK)
        return status;
    if (stored->dtype == parameter->dtype)
        return tfm__model_borrow(r->model, stored, parameter->name, r->err);
    if (!is_float(stored->dtype) || !is_float(parameter->dtype))
        return tfm_error_set(r->err, TFM_STATUS_UNSUPPORTED,
                             "%s: tensor \"%s\" is %s and config.json wants %s; a folder has f32, "
                             "f16 or bf16",
                             tfm_gguf_path(r->model->gguf), parameter->name,
                             tfm_dtype_name(stored->dtype), tfm_dtype_name(parameter->dtype));
    return set_converted(r, parameter, stored);
}

/* Every parameter and every table that the layers make. */
static enum tfm_status add_weights(struct tfm_model *model, struct tfm_error *err)
{
    struct reading reading = {model, err};
    struct tfm_graph *graph = NULL;
    enum tfm_status status = tfm_graph_create(&graph, err);

    if (status != TFM_STATUS_OK)
        return status;
    tfm_nn_decoder(graph, model->gguf->decoder);
    status = tfm_graph_check(graph, err);
    if (status != TFM_STATUS_OK)
        tfm_error_prefix(err, "%s/config.json", tfm_gguf_path(model->gguf));
    if (status == TFM_STATUS_OK)
        status = tfm_graph_parameters(graph, add, &reading);
    if (status == TFM_STATUS_OK) /* the parameters are there: what is left are the tables */
        status = tfm_nn_init_weights(graph, 0, model->weights, err);
    tfm_graph_destroy(graph);
    return status;
}

static void fill_config(struct tfm_model *model)
{
    const struct tfm_nn_decoder *d = model->gguf->decoder;

    model->config = (struct tfm_model_config){
        .architecture = model->architecture,
        .name = model->name,
        .vocab = d->vocab,
        .context = d->positions,
        .width = d->width,
        .layers = d->layers,
        .heads = d->heads,
        .kv_heads = d->kv_heads,
        .head_dim = d->head_dim,
        .ffn_width = d->ffn_width,
        .eps = d->eps,
        .rope_theta = d->rope.theta != 0 ? d->rope.theta : 10000,
        .rope_dims = d->rope_dims ? d->rope_dims : d->head_dim,
        .rope_style = d->rope_style,
        .tied = d->tied,
    };
}

enum tfm_status tfm__own_model_read(struct tfm_model *model, struct tfm_error *err)
{
    const char *path = tfm_gguf_path(model->gguf);

    model->architecture = strdup("tfm");
    model->name = strdup("");
    model->used = calloc(tfm_gguf_tensor_count(model->gguf) + 1, 1);
    if (!model->architecture || !model->name || !model->used)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", path);
    fill_config(model);
    const enum tfm_status status = add_weights(model, err);
    return status == TFM_STATUS_OK ? tfm__model_refuse_unread(model, err) : status;
}
