/* SPDX-License-Identifier: MIT
 * PoCL keeps what it compiled in files and trusts them: one that a full disk or a power cut has damaged
 * ends the process (PoCL aborts when it cannot load it) or computes garbage. So the sums of these files
 * are kept beside them, and before a process builds its first program what no longer fits is removed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backends/opencl/internal.h"
#include "backends/opencl/pocl_files.h"

/* Two letters, then the rest of the program's hash: ROOT/AB/CDEF.../program.bc and, two levels below,
 * KERNEL/SIZES/KERNEL.so. Nothing that is named otherwise is looked at. */
enum { HASH_HEAD = 2, HASH_TAIL = 37 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static time_t checked; /* under the lock: when this process did it; 0 = not yet */

static int is_hash(const char *name, size_t length)
{
    return strlen(name) == length && strspn(name, "ABCDEFGHIJKLMNOP") == length;
}

/* PoCL's own rules. 0 when the folder is not known, or somebody with other rights chose it. */
static int find_root(char *root, size_t size)
{
    static const struct {
        const char *variable, *below;
    } places[] = {{"POCL_CACHE_DIR", ""},
                  {"XDG_CACHE_HOME", "/pocl/kcache"},
                  {"HOME", "/.cache/pocl/kcache"}};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char *value = secure_getenv(places[i].variable);
        if (value && *value) {
            const int n = snprintf(root, size, "%s%s", value, places[i].below);
            return n > 0 && (size_t)n < size;
        }
    }
    return 0;
}

/* Several processes may check the same folder: one after the other. -1 = it cannot be changed anyway. */
static int lock_root(const char *root)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/tfm-lock", root) >= (int)sizeof path)
        return -1;
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return -1;
    if (flock(file, LOCK_EX) != 0) {
        close(file);
        return -1;
    }
    return file;
}

/* Calls visit(context, folder) for the folder of each program. */
static void each_program(const char *root, void (*visit)(void *context, const char *folder),
                         void *context)
{
    DIR *top = opendir(root);
    const struct dirent *a, *b;
    char path[PATH_MAX];

    while (top && (a = readdir(top)) != NULL) {
        if (!is_hash(a->d_name, HASH_HEAD) ||
            snprintf(path, sizeof path, "%s/%s", root, a->d_name) >= (int)sizeof path)
            continue;
        DIR *below = opendir(path);
        while (below && (b = readdir(below)) != NULL) {
            if (is_hash(b->d_name, HASH_TAIL) && snprintf(path, sizeof path, "%s/%s/%s", root,
                                                          a->d_name, b->d_name) < (int)sizeof path)
                visit(context, path);
        }
        if (below)
            closedir(below);
    }
    if (top)
        closedir(top);
}

/* ---- before the first build ---- */

static void check_program(void *context, const char *folder)
{
    const struct tfm_host *host = context;
    char text[PATH_MAX + 128], file[NAME_MAX * 3 + 4];

    if (tfm__pocl_files_whole(folder, file, sizeof file))
        return;
    tfm__pocl_files_remove(folder);
    snprintf(text, sizeof text,
             "%s of the kernel cache %.512s was damaged; its kernels are built anew", file, folder);
    host->log(TFM_LOG_WARN, "opencl", text);
}

void tfm__cl_pocl_cache_check(const struct tfm__cl_device *d)
{
    char root[PATH_MAX];

    pthread_mutex_lock(&lock);
    if (!checked && strcmp(d->platform, "Portable Computing Language") == 0 &&
        find_root(root, sizeof root)) {
        const int file = lock_root(root);
        checked = time(NULL);
        if (file >= 0) {
            each_program(root, check_program, (void *)(uintptr_t)d->host);
            close(file);
        }
    }
    pthread_mutex_unlock(&lock);
}

/* ---- after the last ---- */

/* PoCL touches a file in the folder of each program that it builds or loads; others are not ours. */
static void note_program(void *context, const char *folder)
{
    const time_t *since = context;
    char path[PATH_MAX];
    struct stat info;

    if (snprintf(path, sizeof path, "%s/last_accessed", folder) < (int)sizeof path &&
        stat(path, &info) == 0 && info.st_mtime >= *since)
        tfm__pocl_files_note(folder);
}

void tfm__cl_pocl_cache_note(const struct tfm__cl_device *d)
{
    char root[PATH_MAX];

    pthread_mutex_lock(&lock);
    if (checked && strcmp(d->platform, "Portable Computing Language") == 0 &&
        find_root(root, sizeof root)) {
        const int file = lock_root(root);
        if (file >= 0) {
            each_program(root, note_program, &checked);
            close(file);
        }
    }
    pthread_mutex_unlock(&lock);
}
