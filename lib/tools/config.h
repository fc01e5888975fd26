/* SPDX-License-Identifier: MIT
 * Configurations of layers, and of their training, in files. */
#ifndef TFM__TOOLS_CONFIG_H
#define TFM__TOOLS_CONFIG_H

#include <tfm/train_settings.h>

/* tfm_config_parse of a file. Returns an exit code after it has said what is wrong. */
int tfm__config_read(const char *path, int64_t vocab, struct tfm_nn_decoder *decoder,
                     struct tfm_trainer_settings *settings);
/* Prints every key, what it takes and what it means. */
void tfm__config_help(void);

#endif
