/* SPDX-License-Identifier: MIT
 * Trains a decoder: token windows in, losses out, AdamW in between. One thread at a time.
 *
 * A step is `accumulate` runs of [sequences, length] tokens whose losses and gradients are summed, divided by the
 * number of tokens that have a target, and one update. Everything that decides what the next step does is in a
 * checkpoint, so training that is resumed goes on with the same bits (same build, device and number of threads). */
#ifndef TFM_TRAINER_H
#define TFM_TRAINER_H

#include <tfm/checkpoint.h>
#include <tfm/dataset.h>
#include <tfm/device.h>
#include <tfm/nn.h>
#include <tfm/sampler.h>
#include <tfm/train_settings.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tfm_trainer;

/* Borrowed: outlive the trainer. */
struct tfm_trainer_data {
    const struct tfm_dataset *train;
    const struct tfm_dataset
        *validation; /* NULL = a share of `train` is held out, as the settings say */
};

/* Compiles forward, backward and update for the devices and starts the parameters.
 *   model     its storage types, slots, cells and cache are not read: settings->compute decides
 *   weights   where parameters start, F32 or any type, by name; NULL, or what is missing: see
 *             tfm_trainer_initialize. Not held.
 * As tfm_trainer_settings_check; INVALID_ARGUMENT: a dataset of another vocabulary; OUT_OF_RANGE: too little data
 * for one window (both numbers); SHAPE: a weight does not fit; UNSUPPORTED, STRICT: as tfm_plan_compile; NOMEM. */
TFM_API enum tfm_status tfm_trainer_create(const struct tfm_nn_decoder *model,
                                           const struct tfm_trainer_settings *settings,
                                           const struct tfm_trainer_data *data,
                                           const struct tfm_weights *weights,
                                           struct tfm_device *const *devices, size_t n_devices,
                                           struct tfm_trainer **trainer, struct tfm_error *err);
TFM_API void tfm_trainer_destroy(struct tfm_trainer *trainer); /* NULL is fine */

struct tfm_trainer_report {
    uint64_t step;   /* that was done, counted from 1 */
    uint64_t tokens; /* of it: those that have a target */
    double loss;     /* mean of -ln p of them, before the update */
    double rate;
    double norm;    /* of the mean gradient over all parameters, before clipping */
    double clipped; /* what the gradient was multiplied by to clip it; 1 = nothing */
};

/* One step. After a failure the parameters are as they were, or, if the update had begun, unusable; either way
 * further steps and saves are refused until a checkpoint is loaded.
 * BACKEND: the loss or a gradient is not finite: the text says the step and the first tensor that is not. */
TFM_API enum tfm_status tfm_trainer_step(struct tfm_trainer *trainer,
                                         struct tfm_trainer_report *report, struct tfm_error *err);

/* Mean loss of all validation windows, each without what stands before it. INVALID_ARGUMENT: there are none. */
TFM_API enum tfm_status tfm_trainer_evaluate(struct tfm_trainer *trainer, double *loss,
                                             uint64_t *tokens, struct tfm_error *err);

/* Writes on from a prompt of 1..length - 1 ids with the parameters of now: at most n tokens, as many as fit behind the
 * prompt in `length`, each given to take(), which ends it by returning 1. */
TFM_API enum tfm_status tfm_trainer_sample(struct tfm_trainer *trainer,
                                           const struct tfm_sampler_options *sampling,
                                           const int32_t *prompt, size_t n_prompt, size_t n,
                                           int (*take)(void *context, int32_t id), void *context,
                                           struct tfm_error *err);

/* Writes everything that the next step depends on; what was `path` becomes `previous`, as tfm_checkpoint_writer_finish says.
 * BACKEND: a parameter or moment is not finite, which a step with a finite loss can make: the text names it, the files
 * are as they were, and further steps are refused until a checkpoint is loaded. INVALID_ARGUMENT: a step failed before. */
TFM_API enum tfm_status tfm_trainer_save(struct tfm_trainer *trainer, const char *path,
                                         struct tfm_error *err);
/* Goes on from a checkpoint. INVALID_ARGUMENT: it was made with another model, other settings or other data: the text
 * says what differs and both values; FORMAT: a variable is missing or of another size. Nothing is changed then. */
TFM_API enum tfm_status tfm_trainer_load(struct tfm_trainer *trainer,
                                         const struct tfm_checkpoint *checkpoint,
                                         struct tfm_error *err);

TFM_API uint64_t tfm_trainer_steps(const struct tfm_trainer *trainer);  /* done */
TFM_API uint64_t tfm_trainer_tokens(const struct tfm_trainer *trainer); /* trained on in all */
TFM_API uint64_t
tfm_trainer_parameters(const struct tfm_trainer *trainer); /* values, not tensors */
/* Windows of the data; those of validation. */
TFM_API uint64_t tfm_trainer_windows(const struct tfm_trainer *trainer);
TFM_API uint64_t tfm_trainer_held(const struct tfm_trainer *trainer);
/* Forward, backward and update together: what fell back, how many bytes. state_bytes: parameters, gradients, moments. */
TFM_API void tfm_trainer_summarize(const struct tfm_trainer *trainer,
                                   struct tfm_plan_summary *summary);
/* The plan of forward and backward, node by node. */
TFM_API const struct tfm_plan *tfm_trainer_plan(const struct tfm_trainer *trainer);
/* Copies of all parameters as F32 (the master values of BF16), for export; release them. BACKEND, INVALID_ARGUMENT: as
 * tfm_trainer_save. */
TFM_API enum tfm_status tfm_trainer_weights(struct tfm_trainer *trainer,
                                            struct tfm_weights **weights, struct tfm_error *err);

/* Gives `weights` the parameters of the graph that they do not have yet, as models are started here:
 *   embedding tables   truncated normal, std 0.02, cut 3
 *   attn.o, ffn.down   truncated normal, std 0.02 / sqrt(2 layers), cut 3   (GPT-2: what is added to the residual)
 *   other matrices     truncated normal, std sqrt(2 / (in + out)), cut 3
 *   norms 1, biases 0; and the buffers. */
TFM_API enum tfm_status tfm_trainer_initialize(const struct tfm_graph *graph, int64_t layers,
                                               uint64_t seed, struct tfm_weights *weights,
                                               struct tfm_error *err);

#ifdef __cplusplus
}
#endif
#endif
