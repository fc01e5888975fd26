/* SPDX-License-Identifier: MIT
 * A decoder that is told once for all layers, as files and configurations tell it. */
#ifndef TFM__LLM_FLAT_DECODER_H
#define TFM__LLM_FLAT_DECODER_H

#include <tfm/nn.h>

/* *flat = the decoder with all weights F32, without a cache, and `each` for all layers. UNSUPPORTED, with `who` in
 * front: layers differ in their biases or windows. */
enum tfm_status tfm__flat_decoder(const struct tfm_nn_decoder *decoder, const char *who,
                                  struct tfm_nn_decoder *flat, struct tfm_error *err);

#endif
