/* SPDX-License-Identifier: MIT
 * config.json of a Llama as metadata of a GGUF file. What would change the result and is not implemented is refused,
 * never ignored. Ranges are checked where a GGUF file's are, in model_config.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/llm/folder.h"
#include "lib/llm/text.h"

struct reader {
    const char *path;
    const json_t *config;
    struct tfm_gguf_writer *writer;
    struct tfm_error *err;
    enum tfm_status status; /* the first failure; later reads do nothing */
};

static void refuse(struct reader *r, enum tfm_status status, const char *key, const char *what)
{
    if (r->status == TFM_STATUS_OK)
        r->status = tfm_error_set(r->err, status, "%s/config.json: %s %s", r->path, key, what);
}

/* A number that JSON has as null or not at all is absent. */
static const json_t *get(const struct reader *r, const char *key)
{
    const json_t *value = json_object_get(r->config, key);
    return json_is_null(value) ? NULL : value;
}

/* Copies a whole number; `optional`: it may be absent. Returns it, -1 without. */
static int64_t copy_int(struct reader *r, const char *key, const char *ours, int optional)
{
    const json_t *value = get(r, key);

    if (!value && optional)
        return -1;
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) > INT32_MAX) {
        refuse(r, TFM_STATUS_FORMAT, key, "is missing, or no whole number");
        return -1;
    }
    if (r->status == TFM_STATUS_OK && ours)
        tfm_gguf_writer_uint(r->writer, ours, TFM_GGUF_U32, (uint64_t)json_integer_value(value));
    return json_integer_value(value);
}

static void copy_float(struct reader *r, const char *key, const json_t *value, const char *ours)
{
    if (!json_is_number(value) || !isfinite(json_number_value(value)))
        refuse(r, TFM_STATUS_FORMAT, key, "is missing, or no number");
    else if (r->status == TFM_STATUS_OK)
        tfm_gguf_writer_float(r->writer, ours, (float)json_number_value(value));
}

/* A text that must be `wanted` if it is there. */
static void want_text(struct reader *r, const char *key, const char *wanted)
{
    const json_t *value = get(r, key);
    char what[160];
    struct tfm__quoted quoted;
    const char *text = json_string_value(value);

    if (!value || (text && strcmp(text, wanted) == 0))
        return;
    snprintf(what, sizeof what, "is %s; only \"%s\" is supported",
             text ? tfm__text_quote((struct tfm_text){text, strlen(text)}, &quoted) : "no text",
             wanted);
    refuse(r, TFM_STATUS_UNSUPPORTED, key, what);
}

/* Settings that must be absent, false or `neutral`. */
static void want_neutral(struct reader *r, const char *key, double neutral)
{
    const json_t *value = get(r, key);

    if (value && !json_is_false(value) &&
        !(json_is_number(value) && json_number_value(value) == neutral))
        refuse(r, TFM_STATUS_UNSUPPORTED, key, "is set; this setting is not supported");
}

/* transformers 4 has rope_theta and rope_scaling, 5 has both in rope_parameters. */
static void read_rope(struct reader *r)
{
    const json_t *parameters = get(r, "rope_parameters"), *scaling = get(r, "rope_scaling");
    const json_t *theta = get(r, "rope_theta");
    const json_t *kinds[] = {parameters, scaling};

    for (int i = 0; i < 2; i++) {
        const char *names[] = {"rope_type", "type"};
        for (int k = 0; k < 2; k++) {
            const json_t *type = json_object_get(kinds[i], names[k]);
            if (type && !(json_is_string(type) && strcmp(json_string_value(type), "default") == 0))
                refuse(r, TFM_STATUS_UNSUPPORTED, i ? "rope_scaling" : "rope_parameters",
                       "asks for a scaling of positions; only \"default\" is supported");
        }
    }
    if (!theta)
        theta = json_object_get(parameters, "rope_theta");
    if (theta)
        copy_float(r, "rope_theta", theta, "llama.rope.freq_base");
    want_neutral(r, "rope_interleaved", 0);
    want_neutral(r, "partial_rotary_factor", 1);
}

enum tfm_status tfm__folder_config(const char *path, const json_t *config,
                                   struct tfm_gguf_writer *writer, int *tied, struct tfm_error *err)
{
    struct reader reader = {path, config, writer, err, TFM_STATUS_OK}, *r = &reader;
    const json_t *name = get(r, "_name_or_path");

    if (!get(r, "model_type"))
        refuse(r, TFM_STATUS_FORMAT, "model_type", "is missing");
    want_text(r, "model_type", "llama");
    want_text(r, "hidden_act", "silu");
    tfm_gguf_writer_text(writer, "general.architecture", "llama", 5);
    if (json_is_string(name))
        tfm_gguf_writer_text(writer, "general.name", json_string_value(name),
                             json_string_length(name));
    copy_int(r, "vocab_size", "llama.vocab_size", 0);
    copy_int(r, "hidden_size", "llama.embedding_length", 0);
    copy_int(r, "num_hidden_layers", "llama.block_count", 0);
    copy_int(r, "intermediate_size", "llama.feed_forward_length", 0);
    copy_int(r, "max_position_embeddings", "llama.context_length", 0);
    copy_int(r, "num_attention_heads", "llama.attention.head_count", 0);
    copy_int(r, "num_key_value_heads", "llama.attention.head_count_kv", 1);
    const int64_t head_dim = copy_int(r, "head_dim", "llama.attention.key_length", 1);
    if (head_dim >= 0 && r->status == TFM_STATUS_OK)
        tfm_gguf_writer_uint(writer, "llama.attention.value_length", TFM_GGUF_U32,
                             (uint64_t)head_dim);
    copy_float(r, "rms_norm_eps", get(r, "rms_norm_eps"), "llama.attention.layer_norm_rms_epsilon");
    read_rope(r);
    want_neutral(r, "sliding_window", 0);
    want_neutral(r, "mlp_bias", 0);
    *tied = json_is_true(get(r, "tie_word_embeddings"));
    return r->status;
}
