/* SPDX-License-Identifier: MIT
 * What the files of the trainer share. */
#ifndef TFM__LLM_TRAINER_INTERNAL_H
#define TFM__LLM_TRAINER_INTERNAL_H

#include <tfm/grad.h>
#include <tfm/optimizer.h>
#include <tfm/plan.h>
#include <tfm/trainer.h>

enum { TFM__TRAINER_DEVICES = 16 };

/* A plan that works on the variables of the trainer, and its exec. */
struct tfm__trainer_plan {
    struct tfm_plan *plan;
    struct tfm_exec *exec;
};

struct tfm_trainer {
    struct tfm_nn_decoder model;          /* layer is `layers` */
    struct tfm_nn_decoder_layer *layers;  /* [model.layers] */
    struct tfm_trainer_settings settings; /* zeroes replaced */
    struct tfm_trainer_data data;
    struct tfm_windows windows;    /* of data.train */
    struct tfm_windows validation; /* of what is validated on: those that it holds out */
    struct tfm_device *devices[TFM__TRAINER_DEVICES];
    size_t n_devices;
    struct tfm_weights *weights;     /* where it began */
    const struct tfm_weights *given; /* the caller's, while it is created */
    struct tfm__trainer_plan train, evaluate, sample;
    struct tfm_optimizer *optimizer;

    uint64_t step, place, tokens;
    char *identity;   /* what a checkpoint must have been made with, a line a fact */
    char broken[256]; /* why no step may follow, "" = one may */

    /* of a run: [sequences], [sequences * length] */
    int32_t *slot, *start, *past, *ids, *pos, *targets;
    float *ones, *loss;
    /* of sampling: [length], [length], [vocab] */
    int32_t *sample_ids, *sample_pos;
    float *logits;
};

/* What the graph of a plan ends in. */
enum tfm__trainer_purpose {
    TFM__TRAINER_TRAIN,
    TFM__TRAINER_EVALUATE,
    TFM__TRAINER_SAMPLE,
    TFM__TRAINER_LOOK, /* as EVALUATE, and the result of each node is an output */
};
/* What the names of those outputs begin with; then comes the tensor's own. */
#define TFM__TRAINER_RESULT '='

/* ---- trainer_plans.c ---- */

/* Compiles and opens one of them on the variables of the first. */
enum tfm_status tfm__trainer_compile(struct tfm_trainer *trainer, enum tfm__trainer_purpose purpose,
                                     struct tfm__trainer_plan *plan, struct tfm_error *err);
/* Calls visit for every parameter, in the order of the graph. */
enum tfm_status tfm__trainer_each_parameter(
    const struct tfm_trainer *trainer,
    enum tfm_status (*visit)(void *context, const struct tfm_tensor *tensor), void *context);

/* ---- trainer_init.c: rounds what the caller gives for the parameters of the graph into trainer->weights ---- */
enum tfm_status tfm__trainer_give(struct tfm_trainer *trainer, const struct tfm_graph *graph,
                                  struct tfm_error *err);

/* ---- trainer_memory.c: NOMEM, with the numbers, when this machine cannot hold ---- */

/* a run's tokens, before anything is allocated for them; */
enum tfm_status tfm__trainer_run_fits(const struct tfm_trainer *trainer, struct tfm_error *err);
/* the parameters of a graph with gradients and moments, and beside them `arena` bytes. */
enum tfm_status tfm__trainer_fits(const struct tfm_trainer *trainer, const struct tfm_graph *graph,
                                  size_t arena, struct tfm_error *err);

/* ---- trainer_finite.c: the first tensor of the last run that is not finite, "loss" when it is not known ---- */
void tfm__trainer_first_not_finite(struct tfm_trainer *trainer, char *name, size_t size);

/* ---- trainer_weights.c ---- */

/* The name of the first parameter that is not finite, NULL = all are. */
const char *tfm__trainer_not_finite(const struct tfm_trainer *trainer);
/* 1 if n values are. */
int tfm__trainer_finite(enum tfm_dtype dtype, const void *values, size_t n);
/* No step may follow, and nothing be saved, since a variable is not finite. Returns BACKEND. */
enum tfm_status tfm__trainer_spoilt(struct tfm_trainer *trainer, const char *name,
                                    struct tfm_error *err);

/* ---- trainer_identity.c: model, settings and data as text; NULL when out of memory ---- */
char *tfm__trainer_identity(const struct tfm_trainer *trainer);

/* Elements and bytes of a tensor of fixed shape, which the graph has checked. */
static inline size_t tfm__trainer_elements(const struct tfm_tensor *tensor)
{
    return (size_t)tfm_tensor_elements(tensor);
}
static inline size_t tfm__trainer_bytes(const struct tfm_tensor *tensor)
{
    return tfm__trainer_elements(tensor) * tfm_dtype_info(tensor->dtype)->bytes;
}

#endif
