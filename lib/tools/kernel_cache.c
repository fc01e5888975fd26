/* SPDX-License-Identifier: MIT
 * PoCL keeps built kernels under $XDG_CACHE_HOME/pocl or $HOME/.cache/pocl and gives up its devices
 * when it cannot (an unwritable HOME of a service account, a read-only container). */
#include "lib/tools/kernel_cache.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/tools/message.h"

static char private_folder[PATH_MAX];
static int named; /* 1 = it stands for a POCL_CACHE_DIR that cannot be made */

/* 1 if the folder is there and can be written, or could be made; leaves nothing behind. */
static int can_be_written(const char *folder)
{
    char path[PATH_MAX];
    struct stat info;
    int n = snprintf(path, sizeof path, "%s/", folder);
    if (n >= (int)sizeof path)
        return 0;
    if (stat(path, &info) == 0)
        return S_ISDIR(info.st_mode) && access(path, W_OK | X_OK) == 0;
    /* the nearest folder above it that is there decides */
    do {
        if (errno != ENOENT)
            return 0;
        char *slash = strrchr(path, '/');
        if (!slash)
            return 0;
        *slash = '\0';
    } while (stat(*path ? path : "/", &info) != 0);
    size_t at = strlen(path);
    if (snprintf(path + at, sizeof path - at, "/tfm-XXXXXX") >= (int)(sizeof path - at))
        return 0;
    return mkdtemp(path) && rmdir(path) == 0;
}

static int has_default_cache(void)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[PATH_MAX];
    if (xdg && *xdg)
        return snprintf(folder, sizeof folder, "%s/pocl/kcache", xdg) < (int)sizeof folder &&
               can_be_written(folder);
    if (home)
        return snprintf(folder, sizeof folder, "%s/.cache/pocl/kcache", home) <
                   (int)sizeof folder &&
               can_be_written(folder);
    return 0;
}

/* A folder that is there is PoCL's affair, whatever its rights: kernels may lie in it already. */
static int can_be_used(const char *folder)
{
    struct stat info;
    return (stat(folder, &info) == 0 && S_ISDIR(info.st_mode)) || can_be_written(folder);
}

void tfm__kernel_cache_init(void)
{
    const char *chosen = getenv("POCL_CACHE_DIR"), *tmp = secure_getenv("TMPDIR");
    char folder[PATH_MAX];
    if (*private_folder || (chosen && *chosen ? can_be_used(chosen) : has_default_cache()))
        return;
    named = chosen && *chosen;
    /* where this fails too, the backend says that it has no device */
    if (snprintf(folder, sizeof folder, "%s/tfm-kernels-XXXXXX", tmp && *tmp ? tmp : "/tmp") <
            (int)sizeof folder &&
        mkdtemp(folder) && setenv("POCL_CACHE_DIR", folder, 1) == 0)
        memcpy(private_folder, folder, sizeof folder);
}

void tfm__kernel_cache_tell(void)
{
    DIR *folder = *private_folder ? opendir(private_folder) : NULL;
    const struct dirent *entry;
    int used = 0;
    while (folder && (entry = readdir(folder)))
        used += entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    if (used)
        tfm__message("%s cannot be written, so kernels are built anew each time: set "
                     "POCL_CACHE_DIR to a folder that can",
                     named ? "POCL_CACHE_DIR" : "HOME");
}

int tfm__kernel_cache_is_private(void)
{
    return *private_folder != '\0';
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    remove(path);
    return 0;
}

void tfm__kernel_cache_deinit(void)
{
    if (*private_folder)
        nftw(private_folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    *private_folder = '\0';
}
