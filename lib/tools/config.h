/* SPDX-License-Identifier: MIT
 * Configurations of layers in JSON. */
#ifndef TFM__TOOLS_CONFIG_H
#define TFM__TOOLS_CONFIG_H

#include <tfm/nn.h>

/* Reads a file as the settings of a decoder; its keys stand in config.def. Returns an exit code after it
 * has said which key is wrong. */
int tfm__config_read(const char *path, struct tfm_nn_decoder *decoder);
/* Prints every key, what it takes and what it means. */
void tfm__config_help(void);

#endif
