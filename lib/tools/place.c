/* SPDX-License-Identifier: MIT
 * Finds the build tree through /proc/self/exe, so that no build path is compiled in, and the model
 * that is used when none is named. */
#include "lib/tools/place.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef TFM_PKGDATADIR
#define TFM_PKGDATADIR "/usr/local/share/tfm"
#endif

/* Takes the last part off a path; returns what it was. */
static const char *cut(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash)
        return "";
    *slash = '\0';
    return slash + 1;
}

/* 0 when it would not fit */
static int join(char to[PATH_MAX], const char *folder, const char *name)
{
    const size_t before = strlen(folder), after = strlen(name);
    if (before + after + 2 > PATH_MAX)
        return 0;
    memcpy(to, folder, before);
    to[before] = '/';
    memcpy(to + before + 1, name, after + 1);
    return 1;
}

int tfm__place_build_tree(char top[PATH_MAX])
{
    char path[PATH_MAX], mark[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0)
        return 0;
    path[n] = '\0';
    cut(path);
    /* libtool keeps the program itself beside the script that stands for it */
    char *last = strrchr(path, '/');
    if (last && strcmp(last, "/.libs") == 0)
        cut(path);
    if (!join(mark, path, "config.status") || access(mark, F_OK) != 0)
        return 0;
    memcpy(top, path, strlen(path) + 1);
    return 1;
}

void tfm__place_add_plugins(void)
{
    static const char *const modules[] = {"backends/opencl/.libs", "backends/blas/.libs"};
    char top[PATH_MAX], path[PATH_MAX], list[3 * PATH_MAX] = "";
    struct stat info;

    if (!tfm__place_build_tree(top))
        return;
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        const size_t used = strlen(list);
        if (join(path, top, modules[i]) && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
            snprintf(list + used, sizeof list - used, "%s%s", used ? ":" : "", path);
    }
    if (*list)
        setenv("TFM_PACKAGE_BACKENDS", list, 0);
    if (join(path, top, "tfm-probe"))
        setenv("TFM_PLUGIN_TRIAL_HELPER", path, 0);
}

static int is_model(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);
    return entry->d_name[0] != '.' && n > 5 && strcmp(entry->d_name + n - 5, ".gguf") == 0;
}

static int first_model(const char *folder, char path[PATH_MAX])
{
    struct dirent **names;
    int n = scandir(folder, &names, is_model, alphasort), found = 0;
    for (int i = 0; i < n; i++) {
        struct stat info;
        if (!found && join(path, folder, names[i]->d_name) && stat(path, &info) == 0 &&
            S_ISREG(info.st_mode))
            found = 1;
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    return found;
}

int tfm__place_find_model(char path[PATH_MAX])
{
    char top[PATH_MAX], folder[PATH_MAX];
    if (tfm__place_build_tree(top) && join(folder, top, "models") && first_model(folder, path))
        return 1;
    return first_model("models", path) || first_model(TFM_PKGDATADIR "/models", path);
}
