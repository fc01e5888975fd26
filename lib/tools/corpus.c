/* SPDX-License-Identifier: MIT
 * Lists the files of a corpus. The order is that of the names' bytes, whatever the folder or the
 * language setting says: the same folder is the same corpus everywhere. */
#include "lib/tools/corpus.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/tools/message.h"

static int order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Takes the name, which was allocated. Returns 1 when out of memory. */
static int add(struct tfm__corpus *corpus, char *name)
{
    char **files = name ? realloc(corpus->files, (corpus->n + 1) * sizeof *files) : NULL;

    if (!files) {
        free(name);
        return 1;
    }
    corpus->files = files;
    files[corpus->n++] = name;
    return 0;
}

static int add_folder(const char *path, DIR *folder, struct tfm__corpus *corpus)
{
    const size_t ending = strlen(".txt"), n_path = strlen(path);
    const char *between = n_path > 0 && path[n_path - 1] == '/' ? "" : "/";
    struct dirent *entry;

    while ((entry = readdir(folder))) {
        const size_t size = strlen(entry->d_name);
        struct stat facts;
        char *name = NULL;
        if (size <= ending || strcmp(entry->d_name + size - ending, ".txt") != 0)
            continue;
        if (asprintf(&name, "%s%s%s", path, between, entry->d_name) < 0)
            return tfm__failed("%s: out of memory", path);
        if (stat(name, &facts) == 0 && !S_ISREG(facts.st_mode)) {
            free(name);
            continue;
        }
        if (add(corpus, name))
            return tfm__failed("%s: out of memory", path);
    }
    if (corpus->n == 0)
        return tfm__failed("%s: no *.txt in this folder", path);
    qsort(corpus->files, corpus->n, sizeof *corpus->files, order);
    return TFM__EXIT_OK;
}

int tfm__corpus_open(const char *path, struct tfm__corpus *corpus)
{
    DIR *folder = opendir(path);

    if (!folder && errno != ENOTDIR)
        return tfm__failed("%s: cannot be opened: %s", path, strerror(errno));
    if (!folder)
        return add(corpus, strdup(path)) ? tfm__failed("%s: out of memory", path) : TFM__EXIT_OK;
    const int code = add_folder(path, folder, corpus);
    closedir(folder);
    return code;
}

void tfm__corpus_deinit(struct tfm__corpus *corpus)
{
    for (size_t i = 0; i < corpus->n; i++)
        free(corpus->files[i]);
    free(corpus->files);
}
