/* SPDX-License-Identifier: MIT
 * Configurations in JSON: the layers of a decoder (keys: tfm/decoder_keys.def) and, in the object "train", how it is
 * trained (keys: tfm/train_settings.def). */
#ifndef TFM_CONFIG_H
#define TFM_CONFIG_H

#include <stddef.h>

#include <tfm/train_settings.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads `size` bytes of JSON; messages call it `name`. A config.json that tfm_export_to_folder wrote is one too.
 *   vocab     of a tokenizer that there is: "vocab" may be left out, or must be this; 0 = it must be there.
 *   decoder   every size filled in, a cache for one sequence of all positions unless it is bidirectional. NULL: the
 *             layers are those of a model, and nothing but "train" may be there; whoever knows them calls
 *             tfm_trainer_settings_check.
 *   settings  NULL: "train" need not be there, but is checked when it is.
 * Both are untouched on failure. FORMAT: no JSON object, a key that is unknown, missing, of another type or out of its
 * range (named, with what it must be); as tfm_trainer_settings_check. */
TFM_API enum tfm_status tfm_config_parse(const char *name, const char *text, size_t size,
                                         int64_t vocab, struct tfm_nn_decoder *decoder,
                                         struct tfm_trainer_settings *settings,
                                         struct tfm_error *err);

/* A key as a help text tells it. */
struct tfm_config_key {
    const char *name, *meaning; /* static */
    int needed;                 /* there is no default */
    double fallback;            /* the default */
    char expected[200];         /* "a whole number from 1 to 1024" */
};
/* Key number `index` of the layers, or of "train". NOT_FOUND: there are not so many. */
TFM_API enum tfm_status tfm_config_key(int training, size_t index, struct tfm_config_key *key);

#ifdef __cplusplus
}
#endif
#endif
