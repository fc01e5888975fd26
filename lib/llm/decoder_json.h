/* SPDX-License-Identifier: MIT
 * The settings of a decoder as JSON, in the keys of configurations. */
#ifndef TFM__LLM_DECODER_JSON_H
#define TFM__LLM_DECODER_JSON_H

#include <jansson.h>

#include <tfm/nn.h>

/* An object with every key of tfm/decoder_keys.def, or with `zeros` 0 without those that mean nothing (0, false).
 * Weights of the layers are told by `each`. NULL when out of memory. */
json_t *tfm__decoder_json(const struct tfm_nn_decoder *decoder, int zeros);
/* 1 = the config.json of a folder of our own kind, whose object "decoder" was made by tfm__decoder_json. */
int tfm__config_is_own(const json_t *config);
/* That decoder, ranges and words checked, sizes that are left out filled in, with a cache as tfm_config_parse gives it.
 * FORMAT, with `path` in front. */
enum tfm_status tfm__config_decoder(const char *path, const json_t *config,
                                    struct tfm_nn_decoder *decoder, struct tfm_error *err);
/* A number with no more digits than a float has: 1e-05, not 9.999999747378752e-06. */
json_t *tfm__json_real(double value);

#endif
