/* SPDX-License-Identifier: MIT
 * The two JSON files of a model folder. */
#ifndef TFM__LLM_EXPORT_JSON_H
#define TFM__LLM_EXPORT_JSON_H

#include <jansson.h>

#include "lib/llm/model_internal.h"

/* config.json; NULL when out of memory. */
json_t *tfm__export_config(const struct tfm_model *model, enum tfm_dtype dtype);
/* tokenizer.json from the tokenizer.ggml.* keys, which were read before. UNSUPPORTED: a token that is no UTF-8;
 * NOMEM. */
enum tfm_status tfm__export_tokenizer(const struct tfm_gguf *gguf, json_t **tokenizer,
                                      struct tfm_error *err);

#endif
