/* SPDX-License-Identifier: MIT
 * What model.c, model_config.c, model_tensors.c and session.c share. */
#ifndef TFM__LLM_MODEL_INTERNAL_H
#define TFM__LLM_MODEL_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include <tfm/model.h>

struct tfm_model {
    atomic_uint holders;
    struct tfm_gguf *gguf;
    struct tfm_tokenizer *tokenizer;
    struct tfm_weights *weights;
    struct tfm_model_config config;
    char *architecture, *name;
    enum tfm_dtype embedding, head;
    struct tfm_nn_decoder_layer *layers; /* [config.layers] */
    float *factors;                      /* of the rotation [rope_dims / 2], NULL = none */
    unsigned char *used;                 /* [tensors of the file] 1 = read by the model */

    /* Who hears of weights that a device has taken; one session loads at a time. */
    pthread_mutex_t loading;
    void (*progress)(void *context, size_t done, size_t total);
    void *progress_context;
    size_t done, total;
};

/* A model of an opened file, which becomes the model's, and is closed when this fails. As tfm_model_open. */
enum tfm_status tfm__model_create(struct tfm_gguf *gguf, struct tfm_model **model,
                                  struct tfm_error *err);
struct tfm_model *tfm__model_retain(struct tfm_model *model);

/* Hyperparameters from the file's metadata, each checked. */
enum tfm_status tfm__model_config_read(struct tfm_model *model, struct tfm_error *err);

/* ---- model_tensors.c ---- */

/* The file's tensor, marked as read; NULL when there is none. */
const struct tfm_gguf_tensor *tfm__model_find(struct tfm_model *model, const char *name);
/* FORMAT: there is none (NULL), or of another shape; UNSUPPORTED: of a type that TFM does not have. */
enum tfm_status tfm__model_check(const struct tfm_model *model, const char *name,
                                 const struct tfm_gguf_tensor *tensor, int rank,
                                 const int64_t *shape, struct tfm_error *err);
/* Puts a tensor into model->weights as the file stores it, under our name. */
enum tfm_status tfm__model_borrow(struct tfm_model *model, const struct tfm_gguf_tensor *tensor,
                                  const char *ours, struct tfm_error *err);
/* A tensor that nobody reads would change the result in a way that we do not know. */
enum tfm_status tfm__model_refuse_unread(const struct tfm_model *model, struct tfm_error *err);

/* Every tensor the decoder reads goes into model->weights under our names; every tensor of the file
 * must be read by somebody. */
enum tfm_status tfm__model_tensors_read(struct tfm_model *model, struct tfm_error *err);

/* Configuration and weights of a decoder of any kind (gguf->decoder). FORMAT, UNSUPPORTED, NOMEM. */
enum tfm_status tfm__own_model_read(struct tfm_model *model, struct tfm_error *err);

#endif
