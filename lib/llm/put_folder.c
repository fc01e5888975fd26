/* SPDX-License-Identifier: MIT
 * A model folder: weights, tokenizer, and last the configuration, without which it is no model. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/core/save.h"
#include "lib/llm/export_json.h"
#include "lib/llm/put_folder.h"

static const struct {
    enum tfm_dtype dtype;
    const char *name;
} types[] = {
    {TFM_DTYPE_F32, "float32"},
    {TFM_DTYPE_F16, "float16"},
    {TFM_DTYPE_BF16, "bfloat16"},
};

const char *tfm__put_folder_type(enum tfm_dtype dtype)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].dtype == dtype)
            return types[i].name;
    return NULL;
}

enum tfm_status tfm__put_folder_check(const char *to, enum tfm_dtype dtype, struct tfm_error *err)
{
    return tfm__put_folder_type(dtype)
               ? TFM_STATUS_OK
               : tfm_error_set(err, TFM_STATUS_DTYPE,
                               "%s: safetensors of %s cannot be written: f32, f16 or bf16", to,
                               tfm_dtype_name(dtype));
}

static enum tfm_status no_memory(const char *to, struct tfm_error *err)
{
    return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", to);
}

/* to/name: free() it. */
static enum tfm_status in_folder(const char *to, const char *name, char **path,
                                 struct tfm_error *err)
{
    const size_t size = strlen(to) + strlen(name) + 2;

    *path = malloc(size);
    if (!*path)
        return no_memory(to, err);
    snprintf(*path, size, "%s/%s", to, name);
    return TFM_STATUS_OK;
}

static enum tfm_status put_json(const char *to, const char *name, const json_t *json,
                                struct tfm_error *err)
{
    char *text = json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(9)), *path = NULL;
    struct tfm__save save = {.fd = -1};
    enum tfm_status status = text ? in_folder(to, name, &path, err) : no_memory(to, err);

    if (status == TFM_STATUS_OK)
        status = tfm__save_begin(&save, path, err);
    if (status == TFM_STATUS_OK)
        status = tfm__save_put(&save, text, strlen(text), err);
    if (status == TFM_STATUS_OK)
        status = tfm__save_put(&save, "\n", 1, err);
    if (status == TFM_STATUS_OK)
        status = tfm__save_finish(&save, err);
    tfm__save_abandon(&save);
    free(path);
    free(text);
    return status;
}

static enum tfm_status put_tensors(const char *to, const struct tfm_safetensors_source *sources,
                                   size_t n, struct tfm_error *err)
{
    char *path = NULL;
    enum tfm_status status = in_folder(to, "model.safetensors", &path, err);

    if (status == TFM_STATUS_OK)
        status = tfm_safetensors_save(path, sources, n, err);
    free(path);
    return status;
}

enum tfm_status tfm__put_folder(const char *to, const struct tfm_safetensors_source *sources,
                                size_t n, const struct tfm_gguf *tokenizer, json_t *config,
                                struct tfm_error *err)
{
    json_t *words = NULL;
    enum tfm_status status = tfm__export_tokenizer(tokenizer, &words, err);

    if (status == TFM_STATUS_OK && mkdir(to, 0777) != 0 && errno != EEXIST)
        status = tfm_error_set(err, TFM_STATUS_IO, "%s: cannot be made: %s", to, strerror(errno));
    if (status == TFM_STATUS_OK)
        status = put_tensors(to, sources, n, err);
    if (status == TFM_STATUS_OK)
        status = put_json(to, "tokenizer.json", words, err);
    if (status == TFM_STATUS_OK)
        status = put_json(to, "config.json", config, err);
    json_decref(words);
    return status;
}
