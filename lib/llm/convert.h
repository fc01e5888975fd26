/* SPDX-License-Identifier: MIT
 * Writes an opened model, which need not come from a file. */
#ifndef TFM__LLM_CONVERT_H
#define TFM__LLM_CONVERT_H

#include "lib/llm/model_internal.h"

/* As tfm_convert_to_gguf and tfm_convert_to_folder. */
enum tfm_status tfm__model_to_gguf(const struct tfm_model *model, const char *to,
                                   enum tfm_dtype dtype, struct tfm_error *err);
enum tfm_status tfm__model_to_folder(const struct tfm_model *model, const char *to,
                                     enum tfm_dtype dtype, struct tfm_error *err);

#endif
