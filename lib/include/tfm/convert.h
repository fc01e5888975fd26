/* SPDX-License-Identifier: MIT
 * A model from one file format to another: GGUF, or a folder as Hugging Face has them. `from` is either, and must
 * be a model that tfm_model_open takes. One that is no Llama becomes what tfm_export_to_gguf and tfm_export_to_folder make
 * of it, with their errors. */
#ifndef TFM_CONVERT_H
#define TFM_CONVERT_H

#include <tfm/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes a GGUF file. Matrices become `dtype` (F32, F16, BF16, Q8_0, Q4_0, Q4_1), norms and biases F32; with Q4_0
 * and Q4_1 the embedding and a head of its own become Q8_0. Rows of q and k in adjacent pairs, as llama.cpp wants them.
 * As tfm_model_open; DTYPE: not one of these; SHAPE: a row that is no whole number of blocks; IO: cannot be written,
 * with the old file as it was. */
TFM_API enum tfm_status tfm_convert_to_gguf(const char *from, const char *to, enum tfm_dtype dtype,
                                            struct tfm_error *err);

/* Writes model.safetensors, tokenizer.json and config.json into a folder, which is made if it is not there. Everything
 * becomes `dtype` (F32, F16, BF16). Rows of q and k in halves. UNSUPPORTED: rotation of a part of the head, or factors of
 * rotation; others as above. */
TFM_API enum tfm_status tfm_convert_to_folder(const char *from, const char *to,
                                              enum tfm_dtype dtype, struct tfm_error *err);

#ifdef __cplusplus
}
#endif
#endif
