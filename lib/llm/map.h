/* SPDX-License-Identifier: MIT
 * A file of the user's, mapped read-only. The mapping is as long as the file was when it was opened: a file
 * that somebody shortens afterwards raises SIGBUS, so replace model files by rename. */
#ifndef TFM__LLM_MAP_H
#define TFM__LLM_MAP_H

#include <stddef.h>

#include <tfm/status.h>

struct tfm__map {
    const unsigned char *base; /* never NULL after an open */
    size_t size;
    int mapped; /* 0: an empty file, or nothing opened */
};

/* IO. `what` names the kind of file in errors ("a .gguf model file"). */
enum tfm_status tfm__map_open(struct tfm__map *map, const char *path, const char *what,
                              struct tfm_error *err);
void tfm__map_close(struct tfm__map *map);
/* The whole pages of [data, data + bytes), if they are of the mapping, are not needed for now. */
void tfm__map_drop(const struct tfm__map *map, const void *data, size_t bytes);

#endif
