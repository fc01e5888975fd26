/* SPDX-License-Identifier: MIT
 * Opens and closes GGUF files, and finds tensors in them. The mapping is as long as the file was
 * when it was opened: a file that somebody shortens afterwards raises SIGBUS, so replace model
 * files by rename. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/llm/gguf_internal.h"

static enum tfm_status create(const char *name, const void *data, size_t size, int mapped,
                              struct tfm_gguf **gguf, struct tfm_error *err)
{
    enum tfm_status status;
    struct tfm_gguf *g = calloc(1, sizeof *g);

    if (!g)
        goto no_memory;
    g->name = strdup(name);
    if (!g->name)
        goto no_memory;
    g->base = data;
    g->size = size;
    status = tfm__gguf_parse(g, err);
    if (status != TFM_STATUS_OK) {
        tfm_gguf_close(g);
        return status;
    }
    g->mapped = mapped;
    *gguf = g;
    return TFM_STATUS_OK;
no_memory:
    tfm_gguf_close(g);
    return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", name);
}

static enum tfm_status io_error(const char *path, const char *what, struct tfm_error *err)
{
    return tfm_error_set(err, TFM_STATUS_IO, "%s: %s: %s", path, what, strerror(errno));
}

enum tfm_status tfm_gguf_open(const char *path, struct tfm_gguf **gguf, struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;
    struct stat facts;
    size_t size = 0;
    void *map = MAP_FAILED;
    int file;

    tfm_error_clear(err);
    /* not to hang on a FIFO */
    file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return io_error(path, "cannot open the model file", err);
    if (fstat(file, &facts) != 0) {
        status = io_error(path, "cannot ask for its size", err);
        goto done;
    }
    if (!S_ISREG(facts.st_mode)) {
        status = tfm_error_set(err, TFM_STATUS_IO,
                               "%s: not a regular file, name a .gguf model file", path);
        goto done;
    }
    if (facts.st_size < 0 || (uintmax_t)facts.st_size > SIZE_MAX) {
        status = tfm_error_set(err, TFM_STATUS_IO, "%s: %lld bytes are too many to be mapped here",
                               path, (long long)facts.st_size);
        goto done;
    }
    size = (size_t)facts.st_size;
    if (size == 0) { /* cannot be mapped; the parser has the words for it */
        status = create(path, "", 0, 0, gguf, err);
        goto done;
    }
    map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (map == MAP_FAILED) {
        status = io_error(path, "cannot map the model file", err);
        goto done;
    }
    status = create(path, map, size, 1, gguf, err);
    if (status != TFM_STATUS_OK)
        munmap(map, size);
done:
    close(file);
    return status;
}

enum tfm_status tfm_gguf_open_memory(const void *data, size_t size, const char *name,
                                     struct tfm_gguf **gguf, struct tfm_error *err)
{
    tfm_error_clear(err);
    return create(name ? name : "memory", data ? data : "", data ? size : 0, 0, gguf, err);
}

void tfm_gguf_close(struct tfm_gguf *gguf)
{
    if (!gguf)
        return;
    if (gguf->mapped)
        munmap((void *)(uintptr_t)gguf->base, gguf->size);
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
    return gguf->size;
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

void tfm_gguf_drop(const struct tfm_gguf *gguf, const void *data, size_t bytes)
{
    uintptr_t base = (uintptr_t)gguf->base, begin = (uintptr_t)data, end, page;
    long page_size = sysconf(_SC_PAGESIZE);

    /* of memory that is not a mapped file, MADV_DONTNEED would lose the contents */
    if (!gguf->mapped || page_size <= 0 || begin < base || begin - base > gguf->size ||
        bytes > gguf->size - (begin - base))
        return;
    page = (uintptr_t)page_size;
    end = (begin + bytes) / page * page;
    begin = (begin + page - 1) / page * page;
    if (begin < end)
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}
