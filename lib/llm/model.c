/* SPDX-License-Identifier: MIT
 * A model file as one object: mapping, configuration, tokenizer, weights. */
#include <stdlib.h>

#include "lib/llm/folder.h"
#include "lib/llm/gguf_internal.h"
#include "lib/llm/model_internal.h"

static void close_file(void *context)
{
    tfm_gguf_close(context);
}

enum tfm_status tfm__model_create(struct tfm_gguf *gguf, struct tfm_model **model,
                                  struct tfm_error *err)
{
    struct tfm_weights *weights = NULL;
    struct tfm_model *m = calloc(1, sizeof *m);
    enum tfm_status status =
        m ? tfm_weights_create(&weights, err)
          : tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", tfm_gguf_path(gguf));

    if (status != TFM_STATUS_OK) {
        tfm_gguf_close(gguf);
        free(m);
        return status;
    }
    atomic_init(&m->holders, 1);
    pthread_mutex_init(&m->loading, NULL);
    m->gguf = gguf;
    m->weights = weights;
    tfm_weights_on_destroy(weights, close_file, gguf);
    if (!gguf->decoder)
        status = tfm__model_config_read(m, err);
    if (status == TFM_STATUS_OK)
        status = tfm_tokenizer_create(gguf, &m->tokenizer, err);
    if (status == TFM_STATUS_OK)
        status = gguf->decoder ? tfm__own_model_read(m, err) : tfm__model_tensors_read(m, err);
    if (status != TFM_STATUS_OK) {
        tfm_model_close(m);
        return status;
    }
    *model = m;
    return TFM_STATUS_OK;
}

enum tfm_status tfm_model_open(const char *path, struct tfm_model **model, struct tfm_error *err)
{
    struct tfm_gguf *gguf = NULL;
    enum tfm_status status;

    tfm_error_clear(err);
    status = tfm__folder_is(path) ? tfm__folder_open(path, 1, &gguf, err)
                                  : tfm_gguf_open(path, &gguf, err);
    return status == TFM_STATUS_OK ? tfm__model_create(gguf, model, err) : status;
}

struct tfm_model *tfm__model_retain(struct tfm_model *model)
{
    atomic_fetch_add(&model->holders, 1);
    return model;
}

void tfm_model_close(struct tfm_model *model)
{
    if (!model || atomic_fetch_sub(&model->holders, 1) != 1)
        return;
    tfm_weights_release(model->weights); /* closes the file when no plan holds them any more */
    tfm_tokenizer_destroy(model->tokenizer);
    pthread_mutex_destroy(&model->loading);
    free(model->architecture);
    free(model->name);
    free(model->layers);
    free(model->factors);
    free(model->used);
    free(model);
}

const struct tfm_model_config *tfm_model_config(const struct tfm_model *model)
{
    return &model->config;
}

void tfm_model_decoder(const struct tfm_model *model, struct tfm_nn_decoder *decoder)
{
    const struct tfm_model_config *c = &model->config;

    if (model->gguf->decoder) {
        *decoder = *model->gguf->decoder;
        return;
    }
    *decoder = (struct tfm_nn_decoder){
        .vocab = c->vocab,
        .width = c->width,
        .layers = c->layers,
        .heads = c->heads,
        .kv_heads = c->kv_heads,
        .head_dim = c->head_dim,
        .ffn_width = c->ffn_width,
        .eps = c->eps,
        .rope_dims = c->rope_dims,
        .rope = {.theta = c->rope_theta,
                 .scaling = model->factors ? TFM_NN_ROPE_SCALING_FACTORS : TFM_NN_ROPE_SCALING_NONE,
                 .factors = model->factors},
        .positions = c->context,
        .rope_style = c->rope_style,
        .embedding = model->embedding,
        .head = model->head,
        .tied = c->tied,
        .layer = model->layers,
    };
}

const struct tfm_tokenizer *tfm_model_tokenizer(const struct tfm_model *model)
{
    return model->tokenizer;
}

const char *tfm_model_path(const struct tfm_model *model)
{
    return tfm_gguf_path(model->gguf);
}

size_t tfm_model_bytes(const struct tfm_model *model)
{
    return tfm_gguf_size(model->gguf);
}
