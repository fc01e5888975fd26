/* SPDX-License-Identifier: MIT
 * The values of a trainer's parameters as F32: copies for export, and which of them is not finite. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/llm/trainer_internal.h"

/* All of a variable: free() them. */
static enum tfm_status read(struct tfm_exec *exec, const struct tfm_tensor *tensor, float **values,
                            struct tfm_error *err)
{
    const size_t n = tfm__trainer_elements(tensor), bytes = tfm__trainer_bytes(tensor);
    void *raw = malloc(bytes);
    float *made = malloc(n * sizeof *made);
    enum tfm_status status =
        raw && made
            ? TFM_STATUS_OK
            : tfm_error_set(err, TFM_STATUS_NOMEM, "train: \"%s\": out of memory", tensor->name);

    if (status == TFM_STATUS_OK)
        status = tfm_exec_state_read(exec, tensor->name, raw, bytes, err);
    if (status == TFM_STATUS_OK) {
        tfm_dtype_to_f32(tensor->dtype, raw, 0, n, made);
        *values = made;
        made = NULL;
    }
    free(raw);
    free(made);
    return status;
}

/* ---- what is finite ---- */

int tfm__trainer_finite(enum tfm_dtype dtype, const void *values, size_t n)
{
    enum { CHUNK = 1024 }; /* a multiple of every block */
    float chunk[CHUNK];
    int finite = 1;

    for (size_t first = 0; first < n && finite; first += CHUNK) {
        const size_t now = n - first < CHUNK ? n - first : CHUNK;
        tfm_dtype_to_f32(dtype, values, first, now, chunk);
        for (size_t i = 0; i < now; i++)
            finite &= isfinite(chunk[i]) != 0;
    }
    return finite;
}

/* A step ends with a finite loss and finite gradients; what it made of the parameters is only seen in them. */
enum tfm_status tfm__trainer_spoilt(struct tfm_trainer *trainer, const char *name,
                                    struct tfm_error *err)
{
    snprintf(trainer->broken, sizeof trainer->broken, "after step %llu \"%.150s\" is not finite",
             (unsigned long long)trainer->step, name);
    return tfm_error_set(err, TFM_STATUS_BACKEND,
                         "%s: lower the rate or the decay, and go on from the last checkpoint",
                         trainer->broken);
}

/* ---- copies ---- */

struct copying {
    struct tfm_trainer *trainer;
    struct tfm_weights *weights;
    struct tfm_error *err;
};

/* The master values of a parameter that has some, else its own. */
static enum tfm_status copy(void *context, const struct tfm_tensor *parameter)
{
    const struct copying *c = context;
    struct tfm_trainer *t = c->trainer;
    char name[300];
    float *values = NULL;

    snprintf(name, sizeof name, "%s.master", parameter->name);
    const struct tfm_tensor *master = tfm_graph_find(tfm_optimizer_graph(t->optimizer), name);
    enum tfm_status status = master
                                 ? read(tfm_optimizer_exec(t->optimizer), master, &values, c->err)
                                 : read(t->train.exec, parameter, &values, c->err);
    if (status == TFM_STATUS_OK &&
        !tfm__trainer_finite(TFM_DTYPE_F32, values, tfm__trainer_elements(parameter)))
        status = tfm__trainer_spoilt(t, parameter->name, c->err);
    if (status == TFM_STATUS_OK)
        status = tfm_weights_set(c->weights, parameter->name, TFM_DTYPE_F32, parameter->rank,
                                 parameter->shape, values,
                                 tfm__trainer_elements(parameter) * sizeof *values, c->err);
    free(values);
    return status;
}

enum tfm_status tfm_trainer_weights(struct tfm_trainer *trainer, struct tfm_weights **weights,
                                    struct tfm_error *err)
{
    struct copying copying = {trainer, NULL, err};
    enum tfm_status status;

    tfm_error_clear(err);
    if (trainer->broken[0])
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "train: the parameters are not usable, since a step failed (%.180s)",
                             trainer->broken);
    status = tfm_weights_create(&copying.weights, err);
    if (status == TFM_STATUS_OK)
        status = tfm__trainer_each_parameter(trainer, copy, &copying);
    if (status != TFM_STATUS_OK) {
        tfm_weights_release(copying.weights);
        return status;
    }
    *weights = copying.weights;
    return TFM_STATUS_OK;
}

/* ---- the first that is not finite ---- */

struct search {
    const struct tfm_trainer *trainer;
    const char *found;
};

/* Ends the walk at the first parameter that is not finite; one that cannot be read is passed over. */
static enum tfm_status look(void *context, const struct tfm_tensor *parameter)
{
    struct search *search = context;
    struct tfm_error err = {0};
    float *values = NULL;

    if (read(search->trainer->train.exec, parameter, &values, &err) == TFM_STATUS_OK &&
        !tfm__trainer_finite(TFM_DTYPE_F32, values, tfm__trainer_elements(parameter)))
        search->found = parameter->name;
    free(values);
    return search->found ? TFM_STATUS_INTERNAL : TFM_STATUS_OK;
}

const char *tfm__trainer_not_finite(const struct tfm_trainer *trainer)
{
    struct search search = {trainer, NULL};

    (void)tfm__trainer_each_parameter(trainer, look, &search);
    return search.found;
}
