/* SPDX-License-Identifier: MIT
 * A decoder and its weights, as they are in memory after training, as a model file. */
#ifndef TFM_EXPORT_H
#define TFM_EXPORT_H

#include <tfm/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tfm_export {
    /* Sizes and kinds; how weights are stored, the cache and its cells are not read. With `layer`, all layers have the
     * same biases and windows. */
    const struct tfm_nn_decoder *decoder;
    /* Every parameter of the decoder under its name ("blk.0.attn.q.weight"), of any float or block type, in the
     * shape that the decoder declares. */
    const struct tfm_weights *weights;
    const char *tokenizer; /* a GGUF file with tokenizer.ggml.* keys, or a model folder */
    const char *name;      /* general.name; NULL = none */
};

/* Writes a GGUF file as tfm_convert_to_gguf does: F32, F16, BF16, Q8_0, Q4_1 or Q4_0. The rows of q and k of a decoder
 * whose rotary pairs are halves (TFM_ROPE_HALVES) are written as adjacent pairs.
 * UNSUPPORTED: the decoder is not Llama-shaped (the text names the first setting that is not): other than RMSNorm,
 * SwiGLU, pre-norm blocks, RoPE over the whole head without scaling (factors are possible), biases on q, k, v and o at
 * most. NOT_FOUND: a parameter has no weight; SHAPE: one of another size, or a row that is no whole number of blocks;
 * FORMAT: the tokenizer has not `vocab` tokens; DTYPE; IO; NOMEM; what the tokenizer's file says. */
TFM_API enum tfm_status tfm_export_to_gguf(const struct tfm_export *trained, const char *path,
                                           enum tfm_dtype dtype, struct tfm_error *err);

/* Writes model.safetensors, tokenizer.json and config.json into a folder: F32, F16 or BF16. A Llama becomes what
 * tfm_convert_to_folder writes, rows of q and k in halves. Every other kind of decoder
 * keeps its names and the order of its rows, and config.json has model_type "tfm" and the decoder's settings
 * (docs/model-files.md). tfm_model_open reads both. UNSUPPORTED: factors of rotation. Others as above. */
TFM_API enum tfm_status tfm_export_to_folder(const struct tfm_export *trained, const char *folder,
                                             enum tfm_dtype dtype, struct tfm_error *err);

#ifdef __cplusplus
}
#endif
#endif
