/* SPDX-License-Identifier: MIT
 * A model file, or a folder of safetensors: configuration, weights (borrowed from the mapping), tokenizer. Immutable after open,
 * shared by any number of sessions and threads. */
#ifndef TFM_MODEL_H
#define TFM_MODEL_H

#include <tfm/gguf.h>
#include <tfm/nn.h>
#include <tfm/tokenizer.h>
#include <tfm/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tfm_model;

struct tfm_model_config {
    const char
        *architecture; /* "llama"; "tfm": a decoder of any kind, which tfm_model_decoder tells */
    const char *name;  /* general.name, "" when absent */
    int64_t vocab, context; /* context = positions it was trained for */
    int64_t width, layers, heads, kv_heads, head_dim, ffn_width;
    double eps, rope_theta;
    int64_t rope_dims;
    enum tfm_rope_style rope_style;
    int tied; /* no head of its own: the embedding serves */
};

/* `path`: a Llama as a GGUF file or as a Hugging Face folder, or a folder that tfm_export_to_folder wrote, with a decoder
 * of any kind. IO, FORMAT: as tfm_gguf_open, and tensors that are missing or of wrong shape (named, both shapes), keys
 * of config.json that are unknown, missing or out of range; UNSUPPORTED: architecture, RoPE scaling or tensor type that TFM does not have (named). */
TFM_API enum tfm_status tfm_model_open(const char *path, struct tfm_model **model,
                                       struct tfm_error *err);
TFM_API void tfm_model_close(struct tfm_model *model); /* NULL is fine; sessions hold their own */

TFM_API const struct tfm_model_config *tfm_model_config(const struct tfm_model *model);
/* The decoder that sessions of the model build: every size, and how the file stores each weight; its
 * layers and factors of rotation belong to the model. slots, cells and cache are left to the caller (zero = no cache). */
TFM_API void tfm_model_decoder(const struct tfm_model *model, struct tfm_nn_decoder *decoder);
/* The model as a place to train on from: the same decoder with all weights F32 and `each` for all layers, and every
 * parameter of it in `weights` under its name, as F32 values of what the file holds (blocks and halves are
 * dequantized), copied. Factors of rotation belong to the model. UNSUPPORTED: layers differ in their biases;
 * INVALID_ARGUMENT: `weights` has one of the names; BUSY; NOMEM. *decoder is untouched on failure. */
TFM_API enum tfm_status tfm_model_weights_f32(const struct tfm_model *model,
                                              struct tfm_nn_decoder *decoder,
                                              struct tfm_weights *weights, struct tfm_error *err);
TFM_API const struct tfm_tokenizer *tfm_model_tokenizer(const struct tfm_model *model);
TFM_API const char *tfm_model_path(const struct tfm_model *model);
TFM_API size_t tfm_model_bytes(const struct tfm_model *model); /* of the file */

#ifdef __cplusplus
}
#endif
#endif
