/* SPDX-License-Identifier: MIT
 * Writes the three files of a model folder. */
#ifndef TFM__LLM_PUT_FOLDER_H
#define TFM__LLM_PUT_FOLDER_H

#include <jansson.h>

#include <tfm/gguf.h>
#include <tfm/safetensors.h>

/* DTYPE: a type that folders have not. */
enum tfm_status tfm__put_folder_check(const char *to, enum tfm_dtype dtype, struct tfm_error *err);
/* How config.json calls it: "float32". */
const char *tfm__put_folder_type(enum tfm_dtype dtype);

/* model.safetensors, tokenizer.json from the keys in `tokenizer`, config.json, in a folder that is made if it is not
 * there. As tfm_safetensors_save and tfm__export_tokenizer. */
enum tfm_status tfm__put_folder(const char *to, const struct tfm_safetensors_source *sources,
                                size_t n, const struct tfm_gguf *tokenizer, json_t *config,
                                struct tfm_error *err);

#endif
