/* SPDX-License-Identifier: MIT
 * Opens a model folder as a GGUF file that has its metadata in memory and its tensors in a mapped safetensors file: that
 * of a Llama as Hugging Face writes it, or one of our own kind with any decoder. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/llm/decoder_json.h"
#include "lib/llm/folder.h"
#include "lib/llm/gguf_internal.h"

int tfm__folder_is(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* path/name; NULL when out of memory. */
static char *join(const char *path, const char *name)
{
    const size_t size = strlen(path) + strlen(name) + 2;
    char *joined = malloc(size);

    if (joined)
        snprintf(joined, size, "%s/%s", path, name);
    return joined;
}

static enum tfm_status no_memory(const char *path, struct tfm_error *err)
{
    return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", path);
}

enum tfm_status tfm__folder_json(const char *path, const char *name, json_t **json,
                                 struct tfm_error *err)
{
    char *file = join(path, name);
    struct tfm__map map = {0};
    json_error_t why;

    if (!file)
        return no_memory(path, err);
    enum tfm_status status = tfm__map_open(&map, file, "a JSON file", err);
    json_t *read =
        status == TFM_STATUS_OK ? json_loadb((const char *)map.base, map.size, 0, &why) : NULL;
    if (status == TFM_STATUS_OK && !json_is_object(read)) {
        status = read
                     ? tfm_error_set(err, TFM_STATUS_FORMAT, "%s: no JSON object", file)
                     : tfm_error_set(err, TFM_STATUS_FORMAT, "%s:%d: %s", file, why.line, why.text);
        json_decref(read);
    } else if (status == TFM_STATUS_OK) {
        *json = read;
    }
    tfm__map_close(&map);
    free(file);
    return status;
}

/* config.json of a folder of our own kind: every setting of the decoder, which gets no cache. */
static enum tfm_status read_decoder(const char *path, const json_t *config,
                                    struct tfm_nn_decoder **decoder, struct tfm_error *err)
{
    char *file = join(path, "config.json");
    struct tfm_nn_decoder *read = malloc(sizeof *read);
    enum tfm_status status = file && read ? TFM_STATUS_OK : no_memory(path, err);

    if (status == TFM_STATUS_OK)
        status = tfm__config_decoder(file, config, read, err);
    if (status == TFM_STATUS_OK) {
        read->slots = read->cells = 0;
        *decoder = read;
        read = NULL;
    }
    free(read);
    free(file);
    return status;
}

/* Both JSON files as a GGUF file without tensors. */
static enum tfm_status open_metadata(const char *path, int *tied, struct tfm_gguf **gguf,
                                     struct tfm_error *err)
{
    struct tfm_nn_decoder *decoder = NULL;
    json_t *config = NULL, *tokenizer = NULL;
    struct tfm_gguf_writer *writer = NULL;
    void *memory = NULL;
    size_t size = 0;
    enum tfm_status status = tfm_gguf_writer_create(&writer, err);

    if (status == TFM_STATUS_OK)
        status = tfm__folder_json(path, "config.json", &config, err);
    const int own = tfm__config_is_own(config);
    if (status == TFM_STATUS_OK)
        status = own ? read_decoder(path, config, &decoder, err)
                     : tfm__folder_config(path, config, writer, tied, err);
    if (status == TFM_STATUS_OK)
        status = tfm__folder_json(path, "tokenizer.json", &tokenizer, err);
    if (status == TFM_STATUS_OK)
        status = tfm__folder_tokenizer(
            path, tokenizer, config,
            own ? decoder->vocab : json_integer_value(json_object_get(config, "vocab_size")),
            writer, err);
    if (status == TFM_STATUS_OK)
        status = tfm_gguf_writer_bytes(writer, &memory, &size, err);
    if (status == TFM_STATUS_OK)
        status = tfm_gguf_open_memory(memory, size, path, gguf, err);
    if (status == TFM_STATUS_OK) {
        (*gguf)->owned = memory;
        (*gguf)->halves = !own;
        (*gguf)->decoder = decoder;
    } else {
        free(memory);
        free(decoder);
    }
    tfm_gguf_writer_destroy(writer);
    json_decref(config);
    json_decref(tokenizer);
    return status;
}

/* Tables that old files carry and nobody needs, and a copy of the embedding. */
static int left_out(const char *theirs, int tied)
{
    const char *last = strrchr(theirs, '.');

    return (tied && strcmp(theirs, "lm_head.weight") == 0) ||
           (last && strcmp(last, ".inv_freq") == 0);
}

/* The name that the model looks for; 1 if it looks for none like it. */
static int name_in(const struct tfm_gguf *g, const char *theirs, char name[64])
{
    if (!g->decoder)
        return tfm__folder_name_in(theirs, name);
    return snprintf(name, 64, "%s", theirs) >= 64;
}

static enum tfm_status add_tensors(struct tfm_gguf *g, int tied, struct tfm_error *err)
{
    const size_t n = tfm_safetensors_count(g->folder);

    g->labels = calloc(n + 1, sizeof *g->labels);
    if (!g->labels || tfm__gguf_make_room(g, n))
        return no_memory(g->name, err);
    for (size_t i = 0; i < n; i++) {
        const struct tfm_safetensor *from = tfm_safetensors_at(g->folder, i);
        struct tfm_gguf_tensor *to = &g->tensors[g->n_tensors];
        if (!g->decoder && left_out(from->name, tied))
            continue;
        /* one without a place has no name here, so that nobody finds it, and is refused as unread */
        if (name_in(g, from->name, g->names[g->n_tensors]))
            g->names[g->n_tensors][0] = '\0';
        to->name = (struct tfm_text){g->names[g->n_tensors], strlen(g->names[g->n_tensors])};
        if (from->rank < 1 || from->rank > 4)
            return tfm_error_set(err, TFM_STATUS_UNSUPPORTED,
                                 "%s: tensor \"%.80s\" has %d extents, must have 1 to 4", g->name,
                                 from->name, from->rank);
        to->dtype = from->dtype;
        to->known = from->known;
        to->type_name = from->type_name;
        to->file_type = from->known ? tfm__gguf_number(from->dtype) : UINT32_MAX;
        to->rank = from->rank;
        memcpy(to->shape, from->shape, sizeof to->shape);
        to->data = from->data;
        to->bytes = from->bytes;
        g->labels[g->n_tensors++] = from->name;
    }
    tfm__gguf_sort(g);
    return TFM_STATUS_OK;
}

static enum tfm_status open_tensors(const char *path, struct tfm_gguf *g, int tied,
                                    struct tfm_error *err)
{
    char *file = join(path, "model.safetensors"),
         *shards = join(path, "model.safetensors.index.json");
    enum tfm_status status;

    if (!file || !shards)
        status = no_memory(path, err);
    else if (access(file, F_OK) != 0 && access(shards, F_OK) == 0)
        status = tfm_error_set(err, TFM_STATUS_UNSUPPORTED,
                               "%s: the model is in several files; only one model.safetensors is "
                               "supported: save it again with a larger max_shard_size",
                               path);
    else
        status = tfm_safetensors_open(file, &g->folder, err);
    free(file);
    free(shards);
    return status == TFM_STATUS_OK ? add_tensors(g, tied, err) : status;
}

enum tfm_status tfm__folder_open(const char *path, int tensors, struct tfm_gguf **gguf,
                                 struct tfm_error *err)
{
    struct tfm_gguf *g = NULL;
    int tied = 0;
    enum tfm_status status;

    tfm_error_clear(err);
    status = open_metadata(path, &tied, &g, err);
    if (status == TFM_STATUS_OK && tensors)
        status = open_tensors(path, g, tied, err);
    if (status == TFM_STATUS_OK && tensors && !g->decoder && !tied &&
        !tfm_gguf_find(g, "output.weight"))
        status = tfm_error_set(err, TFM_STATUS_FORMAT,
                               "%s: no tensor \"lm_head.weight\", and config.json does not say "
                               "tie_word_embeddings",
                               path);
    if (status == TFM_STATUS_OK)
        *gguf = g;
    else
        tfm_gguf_close(g);
    return status;
}
