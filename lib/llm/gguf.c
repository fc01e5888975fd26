/* SPDX-License-Identifier: MIT
 * Opens and closes GGUF files, and finds tensors in them. */
#include <stdlib.h>
#include <string.h>

#include "lib/llm/gguf_internal.h"

/* Takes the map over. */
static enum tfm_status create(const char *name, struct tfm__map *map, struct tfm_gguf **gguf,
                              struct tfm_error *err)
{
    enum tfm_status status;
    struct tfm_gguf *g = calloc(1, sizeof *g);

    if (g)
        g->name = strdup(name);
    if (!g || !g->name) {
        free(g);
        tfm__map_close(map);
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", name);
    }
    g->map = *map;
    g->base = map->base;
    g->size = map->size;
    status = tfm__gguf_parse(g, err);
    if (status != TFM_STATUS_OK)
        tfm_gguf_close(g);
    else
        *gguf = g;
    return status;
}

enum tfm_status tfm_gguf_open(const char *path, struct tfm_gguf **gguf, struct tfm_error *err)
{
    struct tfm__map map = {0};
    enum tfm_status status;

    tfm_error_clear(err);
    status = tfm__map_open(&map, path, "a .gguf model file", err);
    return status == TFM_STATUS_OK ? create(path, &map, gguf, err) : status;
}

enum tfm_status tfm_gguf_open_memory(const void *data, size_t size, const char *name,
                                     struct tfm_gguf **gguf, struct tfm_error *err)
{
    struct tfm__map map = {data ? data : (const void *)"", data ? size : 0, 0};

    tfm_error_clear(err);
    return create(name ? name : "memory", &map, gguf, err);
}

void tfm_gguf_close(struct tfm_gguf *gguf)
{
    if (!gguf)
        return;
    tfm__map_close(&gguf->map);
    tfm_safetensors_close(gguf->folder);
    free(gguf->owned);
    free(gguf->names);
    free(gguf->labels);
    free(gguf->decoder);
    free(gguf->tensors_by_name);
    free(gguf->tensors);
    free(gguf->pairs_by_key);
    free(gguf->pairs);
    free(gguf->name);
    free(gguf);
}

const char *tfm_gguf_path(const struct tfm_gguf *gguf)
{
    return gguf->name;
}

size_t tfm_gguf_size(const struct tfm_gguf *gguf)
{
    return gguf->folder ? tfm_safetensors_size(gguf->folder) : gguf->size;
}

size_t tfm_gguf_tensor_count(const struct tfm_gguf *gguf)
{
    return gguf->n_tensors;
}

const struct tfm_gguf_tensor *tfm_gguf_tensor(const struct tfm_gguf *gguf, size_t index)
{
    return index < gguf->n_tensors ? &gguf->tensors[index] : NULL;
}

const struct tfm_gguf_tensor *tfm_gguf_find(const struct tfm_gguf *gguf, const char *name)
{
    const struct tfm_text wanted = {name, strlen(name)};
    size_t low = 0, high = gguf->n_tensors;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = tfm__text_compare(wanted, gguf->tensors_by_name[middle]->name);
        if (order == 0)
            return gguf->tensors_by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* ---- tensors ---- */

int tfm__gguf_make_room(struct tfm_gguf *gguf, size_t n)
{
    free(gguf->tensors);
    free(gguf->tensors_by_name);
    free(gguf->names);
    gguf->n_tensors = 0;
    gguf->tensors = calloc(n + 1, sizeof *gguf->tensors);
    gguf->tensors_by_name = calloc(n + 1, sizeof *gguf->tensors_by_name);
    gguf->names = calloc(n + 1, sizeof *gguf->names);
    return !gguf->tensors || !gguf->tensors_by_name || !gguf->names;
}

static int order_tensors(const void *a, const void *b)
{
    return tfm__text_compare((*(const struct tfm_gguf_tensor *const *)a)->name,
                             (*(const struct tfm_gguf_tensor *const *)b)->name);
}

void tfm__gguf_sort(struct tfm_gguf *gguf)
{
    for (size_t i = 0; i < gguf->n_tensors; i++)
        gguf->tensors_by_name[i] = &gguf->tensors[i];
    qsort(gguf->tensors_by_name, gguf->n_tensors, sizeof *gguf->tensors_by_name, order_tensors);
}

void tfm_gguf_drop(const struct tfm_gguf *gguf, const void *data, size_t bytes)
{
    if (gguf->folder)
        tfm_safetensors_drop(gguf->folder, data, bytes);
    else
        tfm__map_drop(&gguf->map, data, bytes);
}
