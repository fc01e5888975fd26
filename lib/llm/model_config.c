/* SPDX-License-Identifier: MIT
 * Hyperparameters of a Llama-shaped GGUF file (keys: ggml docs/gguf.md). What would change the
 * result and is not implemented is refused, never ignored. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/llm/gguf_internal.h"
#include "lib/llm/model_internal.h"

enum {
    EXTENT_MAX = 1 << 24
}; /* of any width or count: far above every model, far below overflow */

struct reader {
    const struct tfm_gguf *gguf;
    const char *architecture;
    struct tfm_error *err;
    enum tfm_status status; /* the first failure; later reads do nothing */
};

static const char *key_of(const struct reader *reader, const char *leaf, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s.%s", reader->architecture, leaf);
    return buffer;
}

/* An integer in [low, EXTENT_MAX]. fallback >= 0 is taken when the key is not there. */
static int64_t read_int(struct reader *reader, const char *leaf, int64_t low, int64_t fallback)
{
    char key[96];
    uint64_t value = 0;
    struct tfm_error local = {0};

    if (reader->status != TFM_STATUS_OK)
        return low;
    const enum tfm_status status =
        tfm_gguf_uint(reader->gguf, key_of(reader, leaf, key, sizeof key), &value, &local);
    if (status == TFM_STATUS_NOT_FOUND && fallback >= 0)
        return fallback;
    if (status != TFM_STATUS_OK) {
        reader->status = tfm_error_set(reader->err, TFM_STATUS_FORMAT, "%s: %s",
                                       tfm_gguf_path(reader->gguf), local.text);
        return low;
    }
    if (value < (uint64_t)low || value > EXTENT_MAX) {
        reader->status =
            tfm_error_set(reader->err, TFM_STATUS_FORMAT, "%s: %s is %llu, but must be in %lld..%d",
                          tfm_gguf_path(reader->gguf), key, (unsigned long long)value,
                          (long long)low, EXTENT_MAX);
        return low;
    }
    return (int64_t)value;
}

static double read_float(struct reader *reader, const char *leaf, double fallback)
{
    char key[96];
    double value = fallback;
    struct tfm_error local = {0};

    if (reader->status != TFM_STATUS_OK)
        return fallback;
    const enum tfm_status status =
        tfm_gguf_float(reader->gguf, key_of(reader, leaf, key, sizeof key), &value, &local);
    if (status != TFM_STATUS_OK && !(status == TFM_STATUS_NOT_FOUND && fallback >= 0))
        reader->status = tfm_error_set(reader->err, TFM_STATUS_FORMAT, "%s: %s",
                                       tfm_gguf_path(reader->gguf), local.text);
    else if (!isfinite(value) || value < 0)
        reader->status = tfm_error_set(reader->err, TFM_STATUS_FORMAT, "%s: %s is %g",
                                       tfm_gguf_path(reader->gguf), key, value);
    return value;
}

/* Settings that this code does not have: present and away from `neutral` is an error. */
static void refuse_number(struct reader *reader, const char *leaf, double neutral)
{
    char key[96];
    double value = neutral;
    uint64_t integer;

    if (reader->status != TFM_STATUS_OK)
        return;
    key_of(reader, leaf, key, sizeof key);
    if (tfm_gguf_uint(reader->gguf, key, &integer, NULL) == TFM_STATUS_OK)
        value = (double)integer;
    else
        (void)tfm_gguf_float(reader->gguf, key, &value, NULL);
    if (value != neutral)
        reader->status = tfm_error_set(reader->err, TFM_STATUS_UNSUPPORTED,
                                       "%s: %s is %g; this setting is not supported (only %g is)",
                                       tfm_gguf_path(reader->gguf), key, value, neutral);
}

static void refuse_rope_scaling(struct reader *reader)
{
    char key[96];
    struct tfm_text type;

    if (reader->status != TFM_STATUS_OK)
        return;
    key_of(reader, "rope.scaling.type", key, sizeof key);
    if (tfm_gguf_string(reader->gguf, key, &type, NULL) == TFM_STATUS_OK &&
        !(type.size == 4 && memcmp(type.data, "none", 4) == 0))
        reader->status = tfm_error_set(
            reader->err, TFM_STATUS_UNSUPPORTED,
            "%s: RoPE scaling \"%.*s\" (%s) is not supported (only none is, and "
            "factors in rope_freqs.weight)",
            tfm_gguf_path(reader->gguf), (int)(type.size < 40 ? type.size : 40), type.data, key);
    refuse_number(reader, "rope.scale_linear", 1);
}

static char *copy_text(struct tfm_text text)
{
    char *copy = malloc(text.size + 1);
    if (copy) {
        memcpy(copy, text.data, text.size);
        copy[text.size] = '\0';
    }
    return copy;
}

static enum tfm_status read_names(struct tfm_model *model, struct tfm_error *err)
{
    struct tfm_text architecture, name = {"", 0};
    const char *path = tfm_gguf_path(model->gguf);

    if (tfm_gguf_string(model->gguf, "general.architecture", &architecture, err) != TFM_STATUS_OK)
        return TFM_STATUS_FORMAT;
    (void)tfm_gguf_string(model->gguf, "general.name", &name, NULL);
    model->architecture = copy_text(architecture);
    model->name = copy_text(name);
    if (!model->architecture || !model->name)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", path);
    if (strcmp(model->architecture, "llama") != 0)
        return tfm_error_set(err, TFM_STATUS_UNSUPPORTED,
                             "%s: architecture \"%.60s\" is not supported (only llama is)", path,
                             model->architecture);
    return TFM_STATUS_OK;
}

enum tfm_status tfm__model_config_read(struct tfm_model *model, struct tfm_error *err)
{
    struct tfm_model_config *c = &model->config;
    const enum tfm_status status = read_names(model, err);

    if (status != TFM_STATUS_OK)
        return status;
    struct reader reader = {model->gguf, model->architecture, err, TFM_STATUS_OK};
    struct reader *r = &reader;
    c->architecture = model->architecture;
    c->name = model->name;
    c->width = read_int(r, "embedding_length", 1, -1);
    c->layers = read_int(r, "block_count", 1, -1);
    c->ffn_width = read_int(r, "feed_forward_length", 1, -1);
    c->context = read_int(r, "context_length", 1, -1);
    c->heads = read_int(r, "attention.head_count", 1, -1);
    c->kv_heads = read_int(r, "attention.head_count_kv", 1, c->heads);
    c->head_dim = read_int(r, "attention.key_length", 1, c->width / c->heads);
    c->rope_dims = read_int(r, "rope.dimension_count", 1, c->head_dim);
    c->eps = read_float(r, "attention.layer_norm_rms_epsilon", -1);
    c->rope_theta = read_float(r, "rope.freq_base", 10000);
    /* llama files hold q and k rows permuted to pairs, folders do not */
    c->rope_style = model->gguf->halves ? TFM_ROPE_HALVES : TFM_ROPE_ADJACENT;
    const int64_t value_length = read_int(r, "attention.value_length", 1, c->head_dim);
    refuse_rope_scaling(r);
    refuse_number(r, "attention.sliding_window", 0);
    refuse_number(r, "expert_count", 0);
    refuse_number(r, "attention.clamp_kqv", 0);
    if (reader.status != TFM_STATUS_OK)
        return reader.status;

    const char *path = tfm_gguf_path(model->gguf);
    if (c->heads % c->kv_heads != 0)
        return tfm_error_set(err, TFM_STATUS_FORMAT,
                             "%s: %lld heads cannot share %lld kv heads evenly", path,
                             (long long)c->heads, (long long)c->kv_heads);
    if (c->head_dim < 1 || value_length != c->head_dim)
        return tfm_error_set(
            err, TFM_STATUS_UNSUPPORTED,
            "%s: keys of %lld and values of %lld elements a head; they must be equal", path,
            (long long)c->head_dim, (long long)value_length);
    if (c->rope_dims % 2 != 0 || c->rope_dims > c->head_dim)
        return tfm_error_set(
            err, TFM_STATUS_FORMAT,
            "%s: llama.rope.dimension_count is %lld; it must be even and at most the "
            "head's %lld",
            path, (long long)c->rope_dims, (long long)c->head_dim);
    if (!(c->rope_theta > 0))
        return tfm_error_set(err, TFM_STATUS_FORMAT, "%s: llama.rope.freq_base is %g", path,
                             c->rope_theta);
    if ((size_t)c->layers > tfm_gguf_tensor_count(model->gguf))
        return tfm_error_set(err, TFM_STATUS_FORMAT,
                             "%s: llama.block_count is %lld, but the file has %zu tensors", path,
                             (long long)c->layers, tfm_gguf_tensor_count(model->gguf));
    return TFM_STATUS_OK;
}
