/* SPDX-License-Identifier: MIT
 * Configurations of layers, and of their training, in JSON. */
#ifndef TFM__TOOLS_CONFIG_H
#define TFM__TOOLS_CONFIG_H

#include <tfm/train_settings.h>

/* Reads a file as the settings of a decoder (keys:
 * tfm/decoder_keys.def) and, in its object "train", of training (keys:
 * tfm/train_settings.def). Returns an exit code after it has said which key is wrong.
 *   vocab     of a tokenizer that there is: "vocab" may be left out, or must be this; 0 = it must be there.
 *   decoder   NULL: the layers are those of a model, and the file has nothing but "train"; whoever knows them
 *             calls tfm_trainer_settings_check.
 *   settings  NULL: "train" need not be there, but is checked when it is. */
int tfm__config_read(const char *path, int64_t vocab, struct tfm_nn_decoder *decoder,
                     struct tfm_trainer_settings *settings);
/* Prints every key, what it takes and what it means. */
void tfm__config_help(void);

#endif
