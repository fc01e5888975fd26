/* SPDX-License-Identifier: MIT
 * A decoder is a Llama if each setting that a Llama's file has no key for is what a zeroed decoder has. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/llm/decoder_json.h"
#include "lib/llm/export_llama.h"

/* Keys of configurations, in the order in which they are told. */
static const char *const fixed[] = {
    "norm",      "block",           "no_final_norm",   "ffn",           "position",
    "gate_bias", "up_bias",         "down_bias",       "rope_scaling",  "bidirectional",
    "window",    "qk_norm",         "attention_scale", "logit_softcap", "attention_softcap",
    "rope_dims", "embedding_scale",
};

/* What means the same as a zero is one. */
static struct tfm_nn_decoder neutral(const struct tfm_nn_decoder *flat)
{
    struct tfm_nn_decoder c = *flat;

    if (c.embedding_scale == 1)
        c.embedding_scale = 0;
    if (c.scale == 1 / sqrt((double)c.head_dim))
        c.scale = 0;
    if (c.rope_dims == c.head_dim)
        c.rope_dims = 0;
    /* a tensor of the file, if they do nothing else */
    if (c.rope.scaling == TFM_NN_ROPE_SCALING_FACTORS &&
        (c.rope.attn_factor == 0 || c.rope.attn_factor == 1))
        c.rope.scaling = TFM_NN_ROPE_SCALING_NONE;
    return c;
}

int tfm__is_llama(const struct tfm_nn_decoder *flat, struct tfm__reason *reason)
{
    const struct tfm_nn_decoder zero = {0}, mine = neutral(flat);
    json_t *llama = tfm__decoder_json(&zero, 1), *other = tfm__decoder_json(&mine, 1);
    int is = llama && other ? 1 : -1;

    for (size_t i = 0; is == 1 && i < sizeof fixed / sizeof *fixed; i++) {
        const json_t *value = json_object_get(other, fixed[i]);
        if (!json_equal(value, json_object_get(llama, fixed[i]))) {
            char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9));
            snprintf(reason->text, sizeof reason->text, "\"%s\" is %s", fixed[i],
                     text ? text : "?");
            free(text);
            is = 0;
        }
    }
    json_decref(llama);
    json_decref(other);
    return is;
}

int tfm__is_folder_llama(const struct tfm_nn_decoder *flat)
{
    const struct tfm_nn_decoder_layer *each = &flat->each;

    return !each->q_bias == !each->k_bias && !each->q_bias == !each->v_bias &&
           !each->q_bias == !each->o_bias;
}

void tfm__put_llama_keys(const struct tfm_nn_decoder *flat, const char *name,
                         struct tfm_gguf_writer *writer)
{
    const struct {
        const char *key;
        int64_t value;
    } counts[] = {
        {"llama.vocab_size", flat->vocab},
        {"llama.context_length", flat->positions},
        {"llama.embedding_length", flat->width},
        {"llama.block_count", flat->layers},
        {"llama.feed_forward_length", flat->ffn_width},
        {"llama.attention.head_count", flat->heads},
        {"llama.attention.head_count_kv", flat->kv_heads},
        {"llama.attention.key_length", flat->head_dim},
        {"llama.attention.value_length", flat->head_dim},
        {"llama.rope.dimension_count", flat->head_dim},
    };

    tfm_gguf_writer_text(writer, "general.architecture", "llama", 5);
    if (name)
        tfm_gguf_writer_text(writer, "general.name", name, strlen(name));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        tfm_gguf_writer_uint(writer, counts[i].key, TFM_GGUF_U32, (uint64_t)counts[i].value);
    tfm_gguf_writer_float(writer, "llama.attention.layer_norm_rms_epsilon", (float)flat->eps);
    tfm_gguf_writer_float(writer, "llama.rope.freq_base",
                          flat->rope.theta != 0 ? (float)flat->rope.theta : 10000);
}
