/* SPDX-License-Identifier: MIT
 * From the tensors of a Llama-shaped GGUF file to weights under our names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/core/checked.h"
#include "lib/llm/folder.h"
#include "lib/llm/gguf_internal.h"
#include "lib/llm/model_internal.h"

/* A device has made its own copy: the pages of the mapping can go. */
static void on_taken(void *context, const void *data, size_t bytes)
{
    struct tfm_model *model = context;

    tfm_gguf_drop(model->gguf, data, bytes);
    model->done += bytes;
    if (model->progress)
        model->progress(model->progress_context, model->done, model->total);
}

const struct tfm_gguf_tensor *tfm__model_find(struct tfm_model *model, const char *name)
{
    const struct tfm_gguf_tensor *tensor = tfm_gguf_find(model->gguf, name);
    if (tensor)
        model->used[tensor - tfm_gguf_tensor(model->gguf, 0)] = 1;
    return tensor;
}

static void shape_text(char *buffer, size_t size, int rank, const int64_t *shape)
{
    if (rank == 1)
        snprintf(buffer, size, "[%lld]", (long long)shape[0]);
    else
        snprintf(buffer, size, "[%lld, %lld%s]", (long long)shape[0], (long long)shape[1],
                 rank > 2 ? ", ..." : "");
}

enum tfm_status tfm__model_check(const struct tfm_model *model, const char *name,
                                 const struct tfm_gguf_tensor *tensor, int rank,
                                 const int64_t *shape, struct tfm_error *err)
{
    const char *path = tfm_gguf_path(model->gguf);
    char want[64], got[64], theirs[128];

    shape_text(want, sizeof want, rank, shape);
    /* the name that the user finds in the file */
    if (model->gguf->folder && !model->gguf->decoder && tfm__folder_name_out(name, theirs) == 0)
        name = theirs;
    if (!tensor)
        return tfm_error_set(err, TFM_STATUS_FORMAT, "%s: tensor \"%s\" %s is missing", path, name,
                             want);
    if (!tensor->known)
        return tfm_error_set(
            err, TFM_STATUS_UNSUPPORTED,
            "%s: tensor \"%s\" is of type %s, which is not supported; requantize the "
            "file to Q4_0, Q4_1 or Q8_0",
            path, name, tensor->type_name);
    if (tensor->rank != rank || memcmp(tensor->shape, shape, (size_t)rank * sizeof *shape) != 0) {
        shape_text(got, sizeof got, tensor->rank, tensor->shape);
        return tfm_error_set(err, TFM_STATUS_FORMAT,
                             "%s: tensor \"%s\" is %s, but the model needs %s", path, name, got,
                             want);
    }
    return TFM_STATUS_OK;
}

enum tfm_status tfm__model_borrow(struct tfm_model *model, const struct tfm_gguf_tensor *tensor,
                                  const char *ours, struct tfm_error *err)
{
    const struct tfm_dtype_info *info = tfm_dtype_info(tensor->dtype);

    /* devices read plain types in place; a safetensors file, and a GGUF file that asks for it, may hold them at any
     * byte */
    if (info->block == 1 && (uintptr_t)tensor->data % info->bytes != 0)
        return tfm_weights_set(model->weights, ours, tensor->dtype, tensor->rank, tensor->shape,
                               tensor->data, tensor->bytes, err);
    model->total += tensor->bytes;
    return tfm_weights_borrow(model->weights, ours, tensor->dtype, tensor->rank, tensor->shape,
                              tensor->data, tensor->bytes, on_taken, model, err);
}

static enum tfm_status add_matrix(struct tfm_model *model, const char *file, const char *ours,
                                  int64_t out, int64_t in, enum tfm_dtype *dtype,
                                  struct tfm_error *err)
{
    const struct tfm_gguf_tensor *tensor = tfm__model_find(model, file);
    const int64_t shape[2] = {out, in};
    const enum tfm_status status = tfm__model_check(model, file, tensor, 2, shape, err);

    if (status != TFM_STATUS_OK)
        return status;
    *dtype = tensor->dtype;
    return tfm__model_borrow(model, tensor, ours, err);
}

/* Norm weights and biases: F32 in the graph, whatever the file has. */
static enum tfm_status add_vector(struct tfm_model *model, const char *file, const char *ours,
                                  int64_t n, struct tfm_error *err)
{
    const struct tfm_gguf_tensor *tensor = tfm__model_find(model, file);
    enum tfm_status status = tfm__model_check(model, file, tensor, 1, &n, err);
    size_t bytes;

    if (status != TFM_STATUS_OK)
        return status;
    if (tensor->dtype == TFM_DTYPE_F32)
        return tfm__model_borrow(model, tensor, ours, err);
    if (tfm_dtype_info(tensor->dtype)->dtype_class != TFM_DTYPE_FLOAT)
        return tfm_error_set(err, TFM_STATUS_UNSUPPORTED,
                             "%s: tensor \"%s\" is %s; norm weights and biases are floats",
                             tfm_gguf_path(model->gguf), file, tfm_dtype_name(tensor->dtype));
    float *values = tfm__mul_size((size_t)n, sizeof *values, &bytes) ? NULL : malloc(bytes);
    if (!values)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory",
                             tfm_gguf_path(model->gguf));
    tfm_dtype_to_f32(tensor->dtype, tensor->data, 0, (size_t)n, values);
    status = tfm_weights_set(model->weights, ours, TFM_DTYPE_F32, 1, &n, values, bytes, err);
    free(values);
    return status;
}

static enum tfm_status add_linear(struct tfm_model *model, int64_t index, const char *file,
                                  const char *ours, int64_t out, int64_t in, enum tfm_dtype *dtype,
                                  int *bias, struct tfm_error *err)
{
    char from[96], to[96];

    snprintf(from, sizeof from, "blk.%lld.%s.weight", (long long)index, file);
    snprintf(to, sizeof to, "blk.%lld.%s.weight", (long long)index, ours);
    const enum tfm_status status = add_matrix(model, from, to, out, in, dtype, err);
    if (status != TFM_STATUS_OK || !bias)
        return status;
    snprintf(from, sizeof from, "blk.%lld.%s.bias", (long long)index, file);
    snprintf(to, sizeof to, "blk.%lld.%s.bias", (long long)index, ours);
    *bias = tfm_gguf_find(model->gguf, from) != NULL;
    return *bias ? add_vector(model, from, to, out, err) : TFM_STATUS_OK;
}

static enum tfm_status add_norm(struct tfm_model *model, int64_t index, const char *file,
                                const char *ours, struct tfm_error *err)
{
    char from[96], to[96];

    snprintf(from, sizeof from, "blk.%lld.%s.weight", (long long)index, file);
    snprintf(to, sizeof to, "blk.%lld.%s.weight", (long long)index, ours);
    return add_vector(model, from, to, model->config.width, err);
}

static enum tfm_status add_layer(struct tfm_model *model, int64_t index, struct tfm_error *err)
{
    const struct tfm_model_config *c = &model->config;
    struct tfm_nn_decoder_layer *layer = &model->layers[index];
    enum tfm_status status = TFM_STATUS_OK;

#define TFM_LLAMA_NORM(file, theirs, ours) \
    if (status == TFM_STATUS_OK)           \
        status = add_norm(model, index, file, ours, err);
#define TFM_LLAMA_LINEAR(file, theirs, ours, field, out, in, bias) \
    if (status == TFM_STATUS_OK)                                   \
        status = add_linear(model, index, file, ours, out, in, &layer->field, bias, err);
#include "lib/llm/llama.def"
#undef TFM_LLAMA_NORM
#undef TFM_LLAMA_LINEAR
    return status;
}

/* The rotary table of all positions that the model knows. */
static enum tfm_status add_rope_table(struct tfm_model *model, struct tfm_error *err)
{
    const struct tfm_model_config *c = &model->config;
    const struct tfm_gguf_tensor *factors = tfm__model_find(model, "rope_freqs.weight");
    const int64_t shape[3] = {c->context, c->rope_dims / 2, 2};
    const int64_t pairs = c->rope_dims / 2;
    enum tfm_status status = TFM_STATUS_OK;
    size_t n, bytes = 0;
    float *table = NULL;

    if (factors) {
        status = tfm__model_check(model, "rope_freqs.weight", factors, 1, &pairs, err);
        if (status != TFM_STATUS_OK)
            return status;
        model->factors = malloc((size_t)pairs * sizeof *model->factors);
        if (model->factors)
            tfm_dtype_to_f32(factors->dtype, factors->data, 0, (size_t)pairs, model->factors);
    }
    if (!tfm__mul_size((size_t)c->context, (size_t)c->rope_dims, &n) &&
        !tfm__mul_size(n, sizeof *table, &bytes))
        table = malloc(bytes);
    if (!table || (factors && !model->factors))
        status = tfm_error_set(err, TFM_STATUS_NOMEM,
                               "%s: out of memory for the rotary table of %lld positions",
                               tfm_gguf_path(model->gguf), (long long)c->context);
    if (status == TFM_STATUS_OK)
        status = tfm_nn_rope_table(TFM_DTYPE_F32, c->context, c->rope_dims, c->rope_theta,
                                   model->factors, table, err);
    if (status == TFM_STATUS_OK)
        status = tfm_weights_set(model->weights, "rope.table", TFM_DTYPE_F32, 3, shape, table,
                                 bytes, err);
    free(table);
    return status;
}

enum tfm_status tfm__model_refuse_unread(const struct tfm_model *model, struct tfm_error *err)
{
    for (size_t i = 0; i < tfm_gguf_tensor_count(model->gguf); i++) {
        const struct tfm_gguf_tensor *tensor = tfm_gguf_tensor(model->gguf, i);
        const char *name = model->gguf->folder ? model->gguf->labels[i] : tensor->name.data;
        const size_t size = model->gguf->folder ? strlen(name) : tensor->name.size;
        if (!model->used[i] && tensor->bytes > 0)
            return tfm_error_set(
                err, TFM_STATUS_UNSUPPORTED, "%s: tensor \"%.*s\" has no place in the %s",
                tfm_gguf_path(model->gguf), (int)(size < 64 ? size : 64), name,
                model->gguf->decoder ? "decoder of config.json" : "llama architecture");
    }
    return TFM_STATUS_OK;
}

enum tfm_status tfm__model_tensors_read(struct tfm_model *model, struct tfm_error *err)
{
    struct tfm_model_config *c = &model->config;
    const char *path = tfm_gguf_path(model->gguf);
    enum tfm_status status;

    model->used = calloc(tfm_gguf_tensor_count(model->gguf) + 1, 1);
    model->layers = calloc((size_t)c->layers, sizeof *model->layers);
    if (!model->used || !model->layers)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", path);

    const struct tfm_gguf_tensor *embedding = tfm_gguf_find(model->gguf, "token_embd.weight");
    c->vocab = embedding && embedding->rank == 2 ? embedding->shape[0] : 0;
    if ((size_t)c->vocab != tfm_tokenizer_vocab(model->tokenizer))
        return tfm_error_set(
            err, TFM_STATUS_FORMAT,
            "%s: \"token_embd.weight\" has %lld rows, but the tokenizer has %zu tokens", path,
            (long long)c->vocab, tfm_tokenizer_vocab(model->tokenizer));
    status = add_matrix(model, "token_embd.weight", "token_embd.weight", c->vocab, c->width,
                        &model->embedding, err);
    for (int64_t i = 0; status == TFM_STATUS_OK && i < c->layers; i++)
        status = add_layer(model, i, err);
    if (status == TFM_STATUS_OK)
        status = add_vector(model, "output_norm.weight", "output_norm.weight", c->width, err);
    c->tied = !tfm_gguf_find(model->gguf, "output.weight");
    if (status == TFM_STATUS_OK && !c->tied)
        status = add_matrix(model, "output.weight", "output.weight", c->vocab, c->width,
                            &model->head, err);
    if (status == TFM_STATUS_OK)
        status = add_rope_table(model, err);
    if (status == TFM_STATUS_OK)
        status = tfm__model_refuse_unread(model, err);
    return status;
}
