/* SPDX-License-Identifier: MIT
 * A file of the user's, mapped read-only. The mapping is as long as the file was when it was opened: a file
 * that somebody shortens afterwards raises SIGBUS, so replace such files by rename. Header-only, so that every
 * library can use it. */
#ifndef TFM__CORE_MAP_H
#define TFM__CORE_MAP_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tfm/status.h>

struct tfm__map {
    const unsigned char *base; /* never NULL after an open */
    size_t size;
    int mapped; /* 0: an empty file, or nothing opened */
};

static inline enum tfm_status tfm__map_error(const char *path, const char *what,
                                             struct tfm_error *err)
{
    return tfm_error_set(err, TFM_STATUS_IO, "%s: %s: %s", path, what, strerror(errno));
}

/* IO. `what` names the kind of file in errors ("a .gguf model file"). */
static inline enum tfm_status tfm__map_open(struct tfm__map *map, const char *path,
                                            const char *what, struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;
    struct stat facts;
    void *base;

    /* not to hang on a FIFO */
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return tfm__map_error(path, "cannot be opened", err);
    if (fstat(file, &facts) != 0) {
        status = tfm__map_error(path, "cannot ask for its size", err);
    } else if (!S_ISREG(facts.st_mode)) {
        status = tfm_error_set(err, TFM_STATUS_IO, "%s: not a regular file, name %s", path, what);
    } else if (facts.st_size < 0 || (uintmax_t)facts.st_size > SIZE_MAX) {
        status = tfm_error_set(err, TFM_STATUS_IO, "%s: %lld bytes are too many to be mapped here",
                               path, (long long)facts.st_size);
    } else if (facts.st_size == 0) { /* cannot be mapped; the parser has the words for it */
        *map = (struct tfm__map){(const unsigned char *)"", 0, 0};
    } else {
        base = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (base == MAP_FAILED)
            status = tfm__map_error(path, "cannot be mapped", err);
        else
            *map = (struct tfm__map){base, (size_t)facts.st_size, 1};
    }
    close(file);
    return status;
}

static inline void tfm__map_close(struct tfm__map *map)
{
    if (map->mapped)
        munmap((void *)(uintptr_t)map->base, map->size);
    map->mapped = 0;
}

/* The whole pages of [data, data + bytes), if they are of the mapping, are not needed for now. */
static inline void tfm__map_drop(const struct tfm__map *map, const void *data, size_t bytes)
{
    uintptr_t base = (uintptr_t)map->base, begin = (uintptr_t)data, end, page;
    long page_size = sysconf(_SC_PAGESIZE);

    /* of memory that is not a mapped file, MADV_DONTNEED would lose the contents */
    if (!map->mapped || page_size <= 0 || begin < base || begin - base > map->size ||
        bytes > map->size - (begin - base))
        return;
    page = (uintptr_t)page_size;
    end = (begin + bytes) / page * page;
    begin = (begin + page - 1) / page * page;
    if (begin < end)
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED);
}

#endif
