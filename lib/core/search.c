/* SPDX-License-Identifier: MIT
 * The search path of plugins. Every path is absolute before it reaches dlopen: a bare file name
 * would be looked for in the system's library folders, a relative one would move with the current
 * folder. */
#include "lib/core/search.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/core/alloc.h"
#include "lib/core/env.h"

#ifndef TFM_PLUGIN_DIR
#define TFM_PLUGIN_DIR ""
#endif
#define BACKENDS "backends-1" /* the end of $(pkglibdir)/backends-1 */

struct search {
    tfm__search_visit visit;
    void *context;
};

static char *join(const char *folder, const char *name)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    char *path = tfm__alloc(size);
    if (path)
        snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static int is_module_name(const struct dirent *item)
{
    const size_t length = strlen(item->d_name);
    return item->d_name[0] != '.' && length > 3 && strcmp(item->d_name + length - 3, ".so") == 0;
}

/* By bytes: the order shall not depend on the user's language. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static enum tfm_status visit_folder(const struct search *search, const char *folder, int asked)
{
    enum tfm_status status = TFM_STATUS_OK;
    struct dirent **items = NULL;
    const int n = scandir(folder, &items, is_module_name, by_name);

    if (n < 0)
        return errno == ENOMEM ? TFM_STATUS_NOMEM
                               : search->visit(search->context, folder, asked, strerror(errno));
    for (int i = 0; i < n; i++) {
        char *path = status == TFM_STATUS_OK ? join(folder, items[i]->d_name) : NULL;
        if (path)
            status = search->visit(search->context, path, asked, NULL);
        else if (status == TFM_STATUS_OK)
            status = TFM_STATUS_NOMEM;
        tfm__free(path);
        free(items[i]);
    }
    free(items);
    return status;
}

/* A file or folder that somebody wrote down. Resolved here and now, once. */
static enum tfm_status visit_path(const struct search *search, const char *path)
{
    enum tfm_status status;
    struct stat info;
    char *absolute = path[0] == '/' ? strdup(path) : realpath(path, NULL);

    if (!absolute)
        return errno == ENOMEM ? TFM_STATUS_NOMEM
                               : search->visit(search->context, path, 1, strerror(errno));
    if (stat(absolute, &info) != 0)
        status = search->visit(search->context, absolute, 1, strerror(errno));
    else if (S_ISDIR(info.st_mode))
        status = visit_folder(search, absolute, 1);
    else
        status = search->visit(search->context, absolute, 1, NULL);
    free(absolute);
    return status;
}

/* Empty items count for nothing: in PATH they would mean the current folder. */
static enum tfm_status visit_list(const struct search *search, const char *list)
{
    enum tfm_status status = TFM_STATUS_OK;
    char *copy = tfm__strdup(list), *rest = copy, *item;

    if (!copy)
        return TFM_STATUS_NOMEM;
    while (status == TFM_STATUS_OK && (item = strsep(&rest, ":")) != NULL) {
        if (*item)
            status = visit_path(search, item);
    }
    tfm__free(copy);
    return status;
}

static int is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* A name that the loader does not give in full is not trusted: it would be taken from the current
 * folder. */
char *tfm__search_beside(const char *name)
{
    static const char anchor;
    Dl_info info;
    char *folder, *package, *path;

    if (!dladdr(&anchor, &info) || !info.dli_fname || info.dli_fname[0] != '/')
        return NULL;
    folder = tfm__strdup(info.dli_fname);
    if (!folder)
        return NULL;
    *strrchr(folder, '/') = '\0';
    package = join(folder, "tfm");
    path = package ? join(package, name) : NULL;
    tfm__free(folder);
    tfm__free(package);
    return path;
}

static const char *pretended; /* package folder of a test */

void tfm__search_package_set(const char *folder)
{
    pretended = folder;
}

/* The package's folders as they were written: a colon list, or one. NOMEM. */
static enum tfm_status package_places(char **list)
{
    const char *named = tfm__env("TFM_PACKAGE_BACKENDS");
    char *beside = NULL;

    if (pretended)
        *list = tfm__strdup(pretended);
    else if (named && *named)
        *list = tfm__strdup(named);
    else {
        beside = tfm__search_beside(BACKENDS);
        *list = tfm__strdup(beside && is_folder(beside) ? beside : TFM_PLUGIN_DIR);
    }
    tfm__free(beside);
    return *list ? TFM_STATUS_OK : TFM_STATUS_NOMEM;
}

/* An installation without any module is complete: a folder that is not there is no refused row. */
static enum tfm_status visit_package(const struct search *search)
{
    char *list = NULL, *rest, *item;
    enum tfm_status status = package_places(&list);

    for (rest = list; status == TFM_STATUS_OK && (item = strsep(&rest, ":")) != NULL;) {
        if (item[0] == '/' && is_folder(item))
            status = visit_folder(search, item, 0);
    }
    tfm__free(list);
    return status;
}

enum tfm_status tfm__search_plugins(const char *const *plugins, size_t n, tfm__search_visit visit,
                                    void *context)
{
    const struct search search = {visit, context};
    const char *list = tfm__env("TFM_PLUGIN_PATH");
    enum tfm_status status = TFM_STATUS_OK;

    for (size_t i = 0; i < n && status == TFM_STATUS_OK; i++) {
        if (plugins[i])
            status = visit_path(&search, plugins[i]);
    }
    if (status == TFM_STATUS_OK && list)
        status = visit_list(&search, list);
    if (status == TFM_STATUS_OK)
        status = visit_package(&search);
    return status;
}

enum tfm_status tfm__search_places(void (*place)(void *context, const char *source,
                                                 const char *path),
                                   void *context)
{
    const char *named = tfm__env("TFM_PLUGIN_PATH");
    char *lists[2] = {tfm__strdup(named ? named : ""), NULL}, *item;
    static const char *const sources[2] = {"TFM_PLUGIN_PATH", "package"};
    enum tfm_status status = lists[0] ? package_places(&lists[1]) : TFM_STATUS_NOMEM;

    for (int i = 0; i < 2 && status == TFM_STATUS_OK; i++) {
        char *rest = lists[i];
        while ((item = strsep(&rest, ":")) != NULL) {
            if (*item)
                place(context, sources[i], item);
        }
    }
    tfm__free(lists[0]);
    tfm__free(lists[1]);
    return status;
}
