/* SPDX-License-Identifier: MIT
 * How a decoder is trained: sizes of a step, schedule, optimizer, when something is written. */
#ifndef TFM_TRAIN_SETTINGS_H
#define TFM_TRAIN_SETTINGS_H

#include <tfm/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Defaults and ranges: tfm/train_settings.def. */
struct tfm_trainer_settings {
    /* One run sees `sequences` windows of `length` tokens, ids [B T]; one step is `accumulate` runs. */
    int64_t length, sequences, accumulate;
    int64_t steps;

    /* The rate: linear from 0 in `warmup` steps, then a cosine to final_rate at `steps` (tfm/schedule.h). */
    double rate, final_rate;
    int64_t warmup;

    /* AdamW (Loshchilov, Hutter, arXiv:1711.05101); clip = largest global norm of the gradients, 0 = any. */
    double beta1, beta2, adam_eps, weight_decay, clip;
    double embedding_rate; /* factor of the rate for the embedding and a table of positions */

    double
        held_out; /* share of the data at its end, when there are no data of their own to validate on */
    int64_t seed;
    enum tfm_dtype compute; /* F32; BF16: weights in bf16 beside F32 masters */
    int64_t validate_every, sample_every, save_every; /* steps; 0 = at the end only */
    int recompute; /* activations of FFN and norms are computed twice instead of kept */
};

/* What the .def says; length, sequences, steps and rate, which have no default, are 0. */
TFM_API void tfm_trainer_settings_defaults(struct tfm_trainer_settings *settings);

/* OUT_OF_RANGE: a setting beyond its range, or NaN; windows longer than the decoder's positions; more than
 * 2^31 - 1 tokens in a run; warmup > steps; final_rate > rate. UNSUPPORTED: a bidirectional decoder, whose rows see
 * the tokens that they are to predict. The text names the keys and both values. */
TFM_API enum tfm_status tfm_trainer_settings_check(const struct tfm_trainer_settings *settings,
                                                   const struct tfm_nn_decoder *decoder,
                                                   struct tfm_error *err);

#ifdef __cplusplus
}
#endif
#endif
