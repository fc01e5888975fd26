/* SPDX-License-Identifier: MIT
 * A decoder in memory as a model file. A Llama is put before the reader of models as if it were an opened file: what it
 * refuses cannot be written, and the writers of tfm convert do the rest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tfm/export.h>
#include <tfm/graph.h>

#include "lib/core/checked.h"
#include "lib/llm/convert.h"
#include "lib/llm/decoder_json.h"
#include "lib/llm/export_llama.h"
#include "lib/llm/flat_decoder.h"
#include "lib/llm/folder.h"
#include "lib/llm/gguf_internal.h"
#include "lib/llm/put_folder.h"

/* A parameter of the decoder and its values. */
struct item {
    const struct tfm_tensor *tensor;
    enum tfm_dtype dtype;
    const void *data;
    size_t bytes;
};

struct trained {
    const struct tfm_export *export;
    const char *to;
    struct tfm_nn_decoder flat; /* F32, no cache, `each` for all layers */
    struct tfm_graph *graph;
    struct item *items;
    size_t n_items;
    struct tfm_gguf *words; /* the tokenizer's file */
    struct tfm_tokenizer *tokenizer;
    struct tfm_error *err;
};

/* ---- what is there ---- */

static int bytes_of(const struct tfm_tensor *tensor, enum tfm_dtype dtype, size_t *bytes)
{
    const struct tfm_dtype_info *info = tfm_dtype_info(dtype);
    size_t n = 1;

    for (int32_t i = 0; i < tensor->rank; i++)
        if (tfm__mul_size(n, (size_t)tensor->shape[i], &n))
            return 1;
    return n % info->block != 0 || tfm__mul_size(n / info->block, info->bytes, bytes);
}

static enum tfm_status add_item(void *context, const struct tfm_tensor *tensor)
{
    struct trained *t = context;
    struct item *item = &t->items[t->n_items];
    struct tfm_weight weight;
    size_t bytes;
    const enum tfm_status status =
        tfm_weights_get(t->export->weights, tensor->name, &item->dtype, &weight, t->err);

    if (status != TFM_STATUS_OK) {
        tfm_error_prefix(t->err, "%s", t->to);
        return status;
    }
    if (bytes_of(tensor, item->dtype, &bytes) || bytes != weight.bytes)
        return tfm_error_set(t->err, TFM_STATUS_SHAPE,
                             "%s: weight \"%s\" has %zu bytes of %s, which do not fill the shape "
                             "that the decoder declares",
                             t->to, tensor->name, weight.bytes, tfm_dtype_name(item->dtype));
    item->tensor = tensor;
    item->data = weight.data;
    item->bytes = bytes;
    t->n_items++;
    return TFM_STATUS_OK;
}

static enum tfm_status gather(struct trained *t)
{
    enum tfm_status status = tfm_graph_create(&t->graph, t->err);

    if (status != TFM_STATUS_OK)
        return status;
    tfm_nn_decoder(t->graph, &t->flat);
    status = tfm_graph_check(t->graph, t->err);
    if (status != TFM_STATUS_OK)
        return status;
    t->items = calloc((size_t)tfm_graph_tensor_count(t->graph) + 1, sizeof *t->items);
    if (!t->items)
        return tfm_error_set(t->err, TFM_STATUS_NOMEM, "%s: out of memory", t->to);
    return tfm_graph_parameters(t->graph, add_item, t);
}

static enum tfm_status open_tokenizer(struct trained *t)
{
    const char *path = t->export->tokenizer;
    enum tfm_status status = tfm__folder_is(path) ? tfm__folder_open(path, 0, &t->words, t->err)
                                                  : tfm_gguf_open(path, &t->words, t->err);

    if (status == TFM_STATUS_OK)
        status = tfm_tokenizer_create(t->words, &t->tokenizer, t->err);
    if (status == TFM_STATUS_OK && tfm_tokenizer_vocab(t->tokenizer) != (size_t)t->flat.vocab)
        status = tfm_error_set(t->err, TFM_STATUS_FORMAT,
                               "%s: the tokenizer has %zu tokens, but the decoder's vocab is %lld",
                               path, tfm_tokenizer_vocab(t->tokenizer), (long long)t->flat.vocab);
    return status;
}

static void finish(struct trained *t)
{
    tfm_tokenizer_destroy(t->tokenizer);
    tfm_gguf_close(t->words);
    tfm_graph_destroy(t->graph);
    free(t->items);
}

static enum tfm_status begin(struct trained *t)
{
    enum tfm_status status = tfm__flat_decoder(t->export->decoder, t->to, &t->flat, t->err);

    if (status == TFM_STATUS_OK)
        status = gather(t);
    return status == TFM_STATUS_OK ? open_tokenizer(t) : status;
}

/* ---- a Llama ---- */

static void add_tensor(struct tfm_gguf *g, const struct tfm_gguf_tensor *tensor)
{
    struct tfm_gguf_tensor *to = &g->tensors[g->n_tensors];

    *to = *tensor;
    to->name = (struct tfm_text){g->names[g->n_tensors], strlen(g->names[g->n_tensors])};
    to->known = 1;
    to->type_name = tfm_dtype_name(tensor->dtype);
    to->file_type = tfm__gguf_number(tensor->dtype);
    g->n_tensors++;
}

static enum tfm_status add_tensors(const struct trained *t, struct tfm_gguf *g)
{
    const struct tfm_nn_rope *rope = &t->flat.rope;

    if (tfm__gguf_make_room(g, t->n_items + 1))
        return tfm_error_set(t->err, TFM_STATUS_NOMEM, "%s: out of memory", t->to);
    for (size_t i = 0; i < t->n_items; i++) {
        const struct item *item = &t->items[i];
        struct tfm_gguf_tensor tensor = {.dtype = item->dtype,
                                         .rank = item->tensor->rank,
                                         .data = item->data,
                                         .bytes = item->bytes};
        if (tfm__llama_name(item->tensor->name, g->names[g->n_tensors]))
            return tfm_error_set(t->err, TFM_STATUS_UNSUPPORTED,
                                 "%s: no Llama has a parameter \"%s\"", t->to, item->tensor->name);
        memcpy(tensor.shape, item->tensor->shape, (size_t)tensor.rank * sizeof *tensor.shape);
        add_tensor(g, &tensor);
    }
    if (rope->scaling == TFM_NN_ROPE_SCALING_FACTORS) {
        const struct tfm_gguf_tensor factors = {.dtype = TFM_DTYPE_F32,
                                                .rank = 1,
                                                .shape = {t->flat.head_dim / 2},
                                                .data = rope->factors,
                                                .bytes = (size_t)(t->flat.head_dim / 2) *
                                                         sizeof *rope->factors};
        snprintf(g->names[g->n_tensors], sizeof g->names[0], "rope_freqs.weight");
        add_tensor(g, &factors);
    }
    tfm__gguf_sort(g);
    return TFM_STATUS_OK;
}

/* Everything that a file would have, in memory. */
static enum tfm_status open_llama(const struct trained *t, struct tfm_model **model)
{
    struct tfm_gguf_writer *writer = NULL;
    struct tfm_gguf *g = NULL;
    void *keys = NULL;
    size_t size = 0;
    enum tfm_status status = tfm_gguf_writer_create(&writer, t->err);

    if (status == TFM_STATUS_OK) {
        tfm__put_llama_keys(&t->flat, t->export->name, writer);
        tfm_gguf_writer_copy(writer, t->words, "tokenizer.");
        status = tfm_gguf_writer_bytes(writer, &keys, &size, t->err);
    }
    tfm_gguf_writer_destroy(writer);
    if (status == TFM_STATUS_OK)
        status = tfm_gguf_open_memory(keys, size, t->to, &g, t->err);
    if (status != TFM_STATUS_OK) {
        free(keys);
        return status;
    }
    g->owned = keys;
    g->halves = t->flat.rope_style == TFM_ROPE_HALVES;
    status = add_tensors(t, g);
    if (status != TFM_STATUS_OK) {
        tfm_gguf_close(g);
        return status;
    }
    return tfm__model_create(g, model, t->err);
}

enum tfm_status tfm_export_to_gguf(const struct tfm_export *trained, const char *path,
                                   enum tfm_dtype dtype, struct tfm_error *err)
{
    struct trained t = {.export = trained, .to = path, .err = err};
    struct tfm_model *model = NULL;
    struct tfm__reason reason;

    tfm_error_clear(err);
    enum tfm_status status = begin(&t);
    const int is = status == TFM_STATUS_OK ? tfm__is_llama(&t.flat, &reason) : 1;
    if (is < 0)
        status = tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", path);
    else if (!is)
        status = tfm_error_set(err, TFM_STATUS_UNSUPPORTED,
                               "%s: a GGUF file holds models like Llama only, and %s in this one; "
                               "write a folder of safetensors instead",
                               path, reason.text);
    if (status == TFM_STATUS_OK)
        status = open_llama(&t, &model);
    if (status == TFM_STATUS_OK)
        status = tfm__model_to_gguf(model, path, dtype, err);
    tfm_model_close(model);
    finish(&t);
    return status;
}

/* ---- folders ---- */

static json_t *token(int32_t id)
{
    return id < 0 ? json_null() : json_integer(id);
}

/* config.json of a decoder that is no Llama; NULL when out of memory. */
static json_t *describe(const struct trained *t, enum tfm_dtype dtype)
{
    struct tfm_nn_decoder stored = t->flat;

    stored.embedding = stored.head = stored.position_weight = stored.each.q = dtype;
    return json_pack(
        "{ss, ss, so, so, so}", "model_type", "tfm", "torch_dtype", tfm__put_folder_type(dtype),
        "bos_token_id", token(tfm_tokenizer_bos(t->tokenizer)), "eos_token_id",
        token(tfm_tokenizer_eos(t->tokenizer)), "decoder", tfm__decoder_json(&stored, 0));
}

/* Names and rows as they are. */
static enum tfm_status put_own(const struct trained *t, enum tfm_dtype dtype)
{
    struct tfm_safetensors_source *sources = calloc(t->n_items + 1, sizeof *sources);
    json_t *config = describe(t, dtype);
    enum tfm_status status;

    for (size_t i = 0; sources && i < t->n_items; i++)
        sources[i] = (struct tfm_safetensors_source){
            .name = t->items[i].tensor->name,
            .dtype = dtype,
            .rank = t->items[i].tensor->rank,
            .shape = t->items[i].tensor->shape,
            .from = t->items[i].dtype,
            .data = t->items[i].data,
        };
    status = sources && config
                 ? tfm__put_folder(t->to, sources, t->n_items, t->words, config, t->err)
                 : tfm_error_set(t->err, TFM_STATUS_NOMEM, "%s: out of memory", t->to);
    json_decref(config);
    free(sources);
    return status;
}

static enum tfm_status put_llama(const struct trained *t, enum tfm_dtype dtype)
{
    struct tfm_model *model = NULL;
    enum tfm_status status = open_llama(t, &model);

    if (status == TFM_STATUS_OK)
        status = tfm__model_to_folder(model, t->to, dtype, t->err);
    tfm_model_close(model);
    return status;
}

enum tfm_status tfm_export_to_folder(const struct tfm_export *trained, const char *folder,
                                     enum tfm_dtype dtype, struct tfm_error *err)
{
    struct trained t = {.export = trained, .to = folder, .err = err};
    struct tfm__reason reason;

    tfm_error_clear(err);
    enum tfm_status status = tfm__put_folder_check(folder, dtype, err);
    if (status == TFM_STATUS_OK)
        status = begin(&t);
    if (status == TFM_STATUS_OK && t.flat.rope.scaling == TFM_NN_ROPE_SCALING_FACTORS)
        status = tfm_error_set(err, TFM_STATUS_UNSUPPORTED,
                               "%s: factors of rotation have no place in a folder", folder);
    const int is = status == TFM_STATUS_OK ? tfm__is_llama(&t.flat, &reason) : 0;
    if (is < 0)
        status = tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", folder);
    if (status == TFM_STATUS_OK)
        status = is && tfm__is_folder_llama(&t.flat) ? put_llama(&t, dtype) : put_own(&t, dtype);
    finish(&t);
    return status;
}
