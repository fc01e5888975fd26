/* SPDX-License-Identifier: MIT
 * Reads checkpoints. */
#include <stdlib.h>
#include <string.h>

#include "lib/train/checkpoint_file.h"

struct tfm_checkpoint {
    char *path;
    struct tfm__map map;
    struct tfm__checkpoint_section *sections;
    const struct tfm__checkpoint_section **by_name;
    size_t n;
};

static int compare_names(const void *a, const void *b)
{
    const struct tfm__checkpoint_section *const *x = a, *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

/* Sorted, so that a file with very many sections costs no more than its size. */
static enum tfm_status sort_names(struct tfm_checkpoint *c, struct tfm_error *err)
{
    c->by_name = malloc((c->n + 1) * sizeof(const struct tfm__checkpoint_section *));
    if (!c->by_name)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", c->path);
    for (size_t i = 0; i < c->n; i++)
        c->by_name[i] = &c->sections[i];
    qsort((void *)c->by_name, c->n, sizeof(const struct tfm__checkpoint_section *), compare_names);
    for (size_t i = 1; i < c->n; i++)
        if (strcmp(c->by_name[i - 1]->name, c->by_name[i]->name) == 0)
            return tfm_error_set(err, TFM_STATUS_FORMAT,
                                 "%s: two sections are named \"%s\": it is damaged, take another "
                                 "checkpoint",
                                 c->path, c->by_name[i]->name);
    return TFM_STATUS_OK;
}

enum tfm_status tfm_checkpoint_open(const char *path, struct tfm_checkpoint **checkpoint,
                                    struct tfm_error *err)
{
    enum tfm_status status;

    tfm_error_clear(err);
    struct tfm_checkpoint *c = calloc(1, sizeof *c);
    if (c)
        c->path = strdup(path);
    if (!c || !c->path) {
        free(c);
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", path);
    }
    status = tfm__map_open(&c->map, path, "a checkpoint", err);
    if (status == TFM_STATUS_OK)
        status = tfm__checkpoint_check(&c->map, path, 1, &c->sections, &c->n, err);
    if (status == TFM_STATUS_OK)
        status = sort_names(c, err);
    if (status != TFM_STATUS_OK)
        tfm_checkpoint_close(c);
    else
        *checkpoint = c;
    return status;
}

void tfm_checkpoint_close(struct tfm_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    tfm__map_close(&checkpoint->map);
    free((void *)checkpoint->by_name);
    free(checkpoint->sections);
    free(checkpoint->path);
    free(checkpoint);
}

const char *tfm_checkpoint_path(const struct tfm_checkpoint *checkpoint)
{
    return checkpoint->path;
}

size_t tfm_checkpoint_count(const struct tfm_checkpoint *checkpoint)
{
    return checkpoint->n;
}

enum tfm_status tfm_checkpoint_find(const struct tfm_checkpoint *checkpoint, const char *name,
                                    const void **data, size_t *size, struct tfm_error *err)
{
    const struct tfm__checkpoint_section wanted = {.name = name}, *key = &wanted, **found;

    tfm_error_clear(err);
    found = bsearch((const void *)&key, (const void *)checkpoint->by_name, checkpoint->n,
                    sizeof(const struct tfm__checkpoint_section *), compare_names);
    if (!found)
        return tfm_error_set(err, TFM_STATUS_NOT_FOUND, "%s: has no section \"%s\" among its %zu",
                             checkpoint->path, name, checkpoint->n);
    *data = (*found)->data;
    *size = (*found)->size;
    return TFM_STATUS_OK;
}

enum tfm_status tfm_checkpoint_at(const struct tfm_checkpoint *checkpoint, size_t i,
                                  const char **name, const void **data, size_t *size,
                                  struct tfm_error *err)
{
    tfm_error_clear(err);
    if (i >= checkpoint->n)
        return tfm_error_set(err, TFM_STATUS_OUT_OF_RANGE, "%s: section %zu of %zu",
                             checkpoint->path, i, checkpoint->n);
    if (name)
        *name = checkpoint->sections[i].name;
    if (data)
        *data = checkpoint->sections[i].data;
    if (size)
        *size = checkpoint->sections[i].size;
    return TFM_STATUS_OK;
}

void tfm_checkpoint_drop(const struct tfm_checkpoint *checkpoint, const void *data, size_t size)
{
    tfm__map_drop(&checkpoint->map, data, size);
}
