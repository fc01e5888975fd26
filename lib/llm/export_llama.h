/* SPDX-License-Identifier: MIT
 * Which decoders are Llamas, and what a Llama's file says about itself. */
#ifndef TFM__LLM_EXPORT_LLAMA_H
#define TFM__LLM_EXPORT_LLAMA_H

#include <tfm/gguf_write.h>
#include <tfm/nn.h>

struct tfm__reason {
    char text[120]; /* "\"norm\" is \"layer\"" */
};

/* `flat`: one that has `each` for all layers. 1 if it is a Llama; else the first setting that no Llama has.
 * -1 when out of memory. */
int tfm__is_llama(const struct tfm_nn_decoder *flat, struct tfm__reason *reason);
/* 1 if a Hugging Face folder can say all that a Llama is. */
int tfm__is_folder_llama(const struct tfm_nn_decoder *flat);

/* general.* and llama.* keys. */
void tfm__put_llama_keys(const struct tfm_nn_decoder *flat, const char *name,
                         struct tfm_gguf_writer *writer);

#endif
