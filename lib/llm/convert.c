/* SPDX-License-Identifier: MIT
 * Writes an opened model as another file. Opening it has checked every name and shape. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/convert.h>
#include <tfm/export.h>

#include "lib/llm/convert.h"
#include "lib/llm/export_json.h"
#include "lib/llm/folder.h"
#include "lib/llm/gguf_internal.h"
#include "lib/llm/put_folder.h"

/* How a GGUF file of mostly this type is marked (general.file_type, ggml's numbers). */
static const struct {
    enum tfm_dtype dtype;
    uint32_t file_type;
} gguf_dtypes[] = {
    {TFM_DTYPE_F32, 0},  {TFM_DTYPE_F16, 1},  {TFM_DTYPE_Q4_0, 2},
    {TFM_DTYPE_Q4_1, 3}, {TFM_DTYPE_Q8_0, 7}, {TFM_DTYPE_BF16, 32},
};

static int is(struct tfm_text name, const char *text)
{
    return strlen(text) == name.size && memcmp(text, name.data, name.size) == 0;
}

/* 1 for weights and biases of q and k, whose rows stand in the order of the rotation. */
static int rotated(struct tfm_text name)
{
    static const char *const ends[] = {".attn_q.weight", ".attn_k.weight", ".attn_q.bias",
                                       ".attn_k.bias"};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const size_t size = strlen(ends[i]);
        if (name.size > size && memcmp(name.data + name.size - size, ends[i], size) == 0)
            return 1;
    }
    return 0;
}

/* ---- GGUF ---- */

static enum tfm_dtype stored_as(const struct tfm_gguf_tensor *tensor, enum tfm_dtype dtype)
{
    const int table = is(tensor->name, "token_embd.weight") || is(tensor->name, "output.weight");

    if (tensor->rank == 1)
        return TFM_DTYPE_F32;
    if (table && (dtype == TFM_DTYPE_Q4_0 || dtype == TFM_DTYPE_Q4_1))
        return TFM_DTYPE_Q8_0;
    return dtype;
}

static void put_gguf(const struct tfm_model *model, enum tfm_dtype dtype, uint32_t file_type,
                     struct tfm_gguf_writer *writer)
{
    const struct tfm_gguf *gguf = model->gguf;

    tfm_gguf_writer_copy(writer, gguf, "general.");
    tfm_gguf_writer_uint(writer, "general.file_type", TFM_GGUF_U32, file_type);
    if (tfm_dtype_info(dtype)->dtype_class == TFM_DTYPE_BLOCK)
        tfm_gguf_writer_uint(writer, "general.quantization_version", TFM_GGUF_U32, 2);
    tfm_gguf_writer_copy(writer, gguf, "llama.");
    tfm_gguf_writer_copy(writer, gguf, "tokenizer.");
    if (gguf->folder)
        tfm_gguf_writer_uint(writer, "llama.rope.dimension_count", TFM_GGUF_U32,
                             (uint64_t)model->config.rope_dims);
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        const struct tfm_gguf_tensor *tensor = &gguf->tensors[i];
        const struct tfm_gguf_source source = {
            tensor->dtype, tensor->data,
            gguf->halves && rotated(tensor->name) ? model->config.head_dim : 0};
        char name[64];
        if (tensor->bytes == 0)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)tensor->name.size, tensor->name.data);
        tfm_gguf_writer_tensor(writer, name, stored_as(tensor, dtype), tensor->rank, tensor->shape,
                               &source);
    }
}

enum tfm_status tfm__model_to_gguf(const struct tfm_model *model, const char *to,
                                   enum tfm_dtype dtype, struct tfm_error *err)
{
    struct tfm_gguf_writer *writer = NULL;
    size_t kind = 0;
    enum tfm_status status;

    while (kind < sizeof gguf_dtypes / sizeof *gguf_dtypes && gguf_dtypes[kind].dtype != dtype)
        kind++;
    if (kind == sizeof gguf_dtypes / sizeof *gguf_dtypes)
        return tfm_error_set(err, TFM_STATUS_DTYPE, "%s: a model of %s cannot be written", to,
                             tfm_dtype_name(dtype));
    status = tfm_gguf_writer_create(&writer, err);
    if (status == TFM_STATUS_OK) {
        put_gguf(model, dtype, gguf_dtypes[kind].file_type, writer);
        status = tfm_gguf_writer_save(writer, to, err);
    }
    tfm_gguf_writer_destroy(writer);
    return status;
}

/* A model of our own kind is exported as one that was just trained. */
static enum tfm_status
export_own(const struct tfm_model *model, const char *to, enum tfm_dtype dtype,
           enum tfm_status (*write)(const struct tfm_export *what, const char *to,
                                    enum tfm_dtype dtype, struct tfm_error *err),
           struct tfm_error *err)
{
    const struct tfm_export what = {.decoder = model->gguf->decoder,
                                    .weights = model->weights,
                                    .tokenizer = tfm_model_path(model)};

    return write(&what, to, dtype, err);
}

enum tfm_status tfm_convert_to_gguf(const char *from, const char *to, enum tfm_dtype dtype,
                                    struct tfm_error *err)
{
    struct tfm_model *model = NULL;
    enum tfm_status status;

    tfm_error_clear(err);
    status = tfm_model_open(from, &model, err);
    if (status == TFM_STATUS_OK)
        status = model->gguf->decoder ? export_own(model, to, dtype, tfm_export_to_gguf, err)
                                      : tfm__model_to_gguf(model, to, dtype, err);
    tfm_model_close(model);
    return status;
}

/* ---- folder ---- */

enum tfm_status tfm__model_to_folder(const struct tfm_model *model, const char *to,
                                     enum tfm_dtype dtype, struct tfm_error *err)
{
    const struct tfm_gguf *gguf = model->gguf;
    struct tfm_safetensors_source *sources = calloc(gguf->n_tensors + 1, sizeof *sources);
    char(*names)[128] = calloc(gguf->n_tensors + 1, sizeof *names);
    json_t *config = NULL;
    size_t n = 0;
    enum tfm_status status = tfm__put_folder_check(to, dtype, err);

    if (status == TFM_STATUS_OK && model->config.rope_dims != model->config.head_dim)
        status = tfm_error_set(err, TFM_STATUS_UNSUPPORTED,
                               "%s: %lld of %lld elements of a head are rotated: a folder cannot "
                               "say that",
                               tfm_gguf_path(gguf), (long long)model->config.rope_dims,
                               (long long)model->config.head_dim);
    if (status == TFM_STATUS_OK &&
        (!sources || !names || !(config = tfm__export_config(model, dtype))))
        status = tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", to);
    for (size_t i = 0; status == TFM_STATUS_OK && i < gguf->n_tensors; i++) {
        const struct tfm_gguf_tensor *tensor = &gguf->tensors[i];
        char ours[64];
        snprintf(ours, sizeof ours, "%.*s", (int)tensor->name.size, tensor->name.data);
        if (tensor->bytes == 0)
            continue;
        if (tfm__folder_name_out(ours, names[n]))
            status = tfm_error_set(err, TFM_STATUS_UNSUPPORTED,
                                   "%s: tensor \"%s\" has no place in a folder",
                                   tfm_gguf_path(gguf), ours);
        sources[n] = (struct tfm_safetensors_source){
            .name = names[n],
            .dtype = dtype,
            .rank = tensor->rank,
            .shape = tensor->shape,
            .from = tensor->dtype,
            .data = tensor->data,
            .pair_rows = !gguf->halves && rotated(tensor->name) ? -model->config.head_dim : 0,
        };
        n++;
    }
    if (status == TFM_STATUS_OK)
        status = tfm__put_folder(to, sources, n, gguf, config, err);
    json_decref(config);
    free(names);
    free(sources);
    return status;
}

enum tfm_status tfm_convert_to_folder(const char *from, const char *to, enum tfm_dtype dtype,
                                      struct tfm_error *err)
{
    struct tfm_model *model = NULL;
    enum tfm_status status;

    tfm_error_clear(err);
    status = tfm_model_open(from, &model, err);
    if (status == TFM_STATUS_OK)
        status = model->gguf->decoder ? export_own(model, to, dtype, tfm_export_to_folder, err)
                                      : tfm__model_to_folder(model, to, dtype, err);
    tfm_model_close(model);
    return status;
}
