/* SPDX-License-Identifier: MIT
 * PoCL keeps what it compiled in files and trusts them: one that a full disk or a power cut has damaged
 * ends the process (PoCL aborts when it cannot load it) or computes garbage. So the sums of these files
 * are kept beside them, and before a program is built what no longer fits is removed. Reading a whole cache takes a
 * second for each gigabyte, and PoCL never empties it; so a link tells which folder a program of ours has come to. */
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
#include "backends/opencl/pocl_cache.h"
#include "backends/opencl/pocl_files.h"

/* Two letters, then the rest of the program's hash: ROOT/AB/CDEF.../program.bc and, two levels below,
 * KERNEL/SIZES/KERNEL.so. Nothing that is named otherwise is looked at. */
enum { HASH_HEAD = 2, HASH_TAIL = 37, FOLDER = HASH_HEAD + 1 + HASH_TAIL };

/* Folders of programs that this process has built or loaded. More than USED have no places of their own. */
enum { USED = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* All under the lock. */
static struct used {
    time_t since; /* the first program of the process was asked for; 0 = none was */
    int checked;  /* everything was */
    int waited;   /* for the lock of other processes, in vain */
    int unknown;  /* programs whose folder is not known are in use, too */
    uint32_t n;
    char folders[USED][FOLDER + 1]; /* "AB/CDEF..." */
} used;

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

/* Tries to get the lock, one a millisecond. */
enum { TRIES = 500 };

/* Several processes may check the same folder: one after the other. But one that is stopped, or at a large cache with a
 * busy processor, does not keep the others from starting: they do it at the same time. -1 = it cannot be changed
 * anyway. */
static int lock_root(const char *root)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/tfm-lock", root) >= (int)sizeof path)
        return -1;
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return -1;
    for (int tries = 0; tries < (used.waited ? 1 : TRIES); tries++) {
        const struct timespec pause = {0, 1000000};
        if (flock(file, LOCK_EX | LOCK_NB) == 0)
            return file;
        if (errno != EWOULDBLOCK && errno != EINTR) {
            close(file);
            return -1;
        }
        (void)nanosleep(&pause, NULL);
    }
    used.waited = 1;
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

/* 1 if it was there to be locked; the caller closes *file. */
static int enter(const struct tfm__cl_device *d, char *root, size_t size, int *file)
{
    if (strcmp(d->platform, "Portable Computing Language") != 0 || !find_root(root, size))
        return 0;
    if (!used.since)
        used.since = time(NULL);
    *file = lock_root(root);
    return *file >= 0;
}

/* ---- which folder belongs to a program ---- */

static int is_used(const char *folder)
{
    for (uint32_t i = 0; i < used.n; i++) {
        if (strcmp(used.folders[i], folder) == 0)
            return 1;
    }
    return 0;
}

static void use(const char *folder)
{
    if (is_used(folder))
        return;
    if (used.n == USED)
        used.unknown = 1;
    else
        memcpy(used.folders[used.n++], folder, FOLDER + 1);
}

static int link_path(const char *root, uint64_t key, char *path, size_t size)
{
    return snprintf(path, size, "%s/tfm-%016" PRIx64, root, key) < (int)size;
}

/* 1 if the link names a folder that is there; `path` is where. */
static int follow(const char *root, uint64_t key, char *folder, char *path, size_t size)
{
    struct stat info;

    if (!link_path(root, key, path, size))
        return 0;
    const ssize_t n = readlink(path, folder, FOLDER + 1);
    if (n != FOLDER || folder[HASH_HEAD] != '/')
        return 0;
    folder[FOLDER] = 0;
    folder[HASH_HEAD] = 0;
    const int is_one = is_hash(folder, HASH_HEAD) && is_hash(folder + HASH_HEAD + 1, HASH_TAIL);
    folder[HASH_HEAD] = '/';
    return is_one && snprintf(path, size, "%s/%s", root, folder) < (int)size &&
           lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* PoCL touches a file in the folder of each program that it builds or loads. */
static int is_touched(const char *folder, const struct timespec *since)
{
    char path[PATH_MAX];
    struct stat info;

    return snprintf(path, sizeof path, "%s/last_accessed", folder) < (int)sizeof path &&
           stat(path, &info) == 0 &&
           (info.st_mtim.tv_sec > since->tv_sec ||
            (info.st_mtim.tv_sec == since->tv_sec && info.st_mtim.tv_nsec >= since->tv_nsec));
}

/* The folders that were touched meanwhile, but for those of other programs of this process. */
struct search {
    const struct timespec *since;
    uint32_t found;
    char folder[FOLDER + 1]; /* the last of them */
};

static void look_at(void *context, const char *folder)
{
    struct search *s = context;
    const char *name = folder + strlen(folder) - FOLDER;

    if (!is_used(name) && is_touched(folder, s->since)) {
        memcpy(s->folder, name, FOLDER + 1);
        s->found++;
    }
}

/* What PoCL makes its own hash of, and what we know of the rest: a program has one key on one machine. */
static uint64_t key_of(const struct tfm__cl_device *d, const char *options, const char **strings,
                       size_t n)
{
    const char *facts[] = {d->name, d->driver, options};
    uint64_t h = 0;

    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        h = tfm__pocl_files_sum(h, facts[i], strlen(facts[i]) + 1);
    for (size_t i = 0; i < n; i++)
        h = tfm__pocl_files_sum(h, strings[i], strlen(strings[i]) + 1);
    for (char **e = environ; *e; e++) {
        /* wherever the cache lies: it may be moved */
        if (strncmp(*e, "POCL_", 5) == 0 && strncmp(*e, "POCL_CACHE_DIR=", 15) != 0)
            h = tfm__pocl_files_sum(h, *e, strlen(*e) + 1);
    }
    return h;
}

/* ---- before a build ---- */

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

static void check_all(const struct tfm__cl_device *d, const char *root)
{
    if (!used.checked)
        each_program(root, check_program, (void *)(uintptr_t)d->host);
    used.checked = 1;
}

void tfm__cl_pocl_cache_check(const struct tfm__cl_device *d)
{
    char root[PATH_MAX];
    int file;

    pthread_mutex_lock(&lock);
    if (enter(d, root, sizeof root, &file)) {
        check_all(d, root);
        used.unknown = 1;
        close(file);
    }
    pthread_mutex_unlock(&lock);
}

void tfm__cl_pocl_cache_before(const struct tfm__cl_device *d, const char *options,
                               const char **strings, size_t n, struct tfm__cl_pocl_build *build)
{
    char root[PATH_MAX], path[PATH_MAX], folder[FOLDER + 1];
    int file;

    build->key = 0;
    pthread_mutex_lock(&lock);
    if (enter(d, root, sizeof root, &file)) {
        build->key = key_of(d, options, strings, n);
        /* the clock by which the system tells when a file was changed */
        clock_gettime(CLOCK_REALTIME_COARSE, &build->since);
        if (!follow(root, build->key, folder, path, sizeof path))
            check_all(d, root);
        else if (!used.checked && !is_used(folder))
            check_program((void *)(uintptr_t)d->host, path);
        close(file);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- after it ---- */

/* One new link, or none: who finds none looks at everything. */
static void link_to(const char *root, uint64_t key, const char *folder)
{
    char path[PATH_MAX];

    if (!link_path(root, key, path, sizeof path))
        return;
    (void)unlink(path);
    if (folder && symlink(folder, path) == 0)
        use(folder);
    else
        used.unknown = 1;
}

void tfm__cl_pocl_cache_after(const struct tfm__cl_device *d,
                              const struct tfm__cl_pocl_build *build)
{
    char root[PATH_MAX], path[PATH_MAX], folder[FOLDER + 1];
    struct search search = {&build->since, 0, ""};
    int file;

    pthread_mutex_lock(&lock);
    if (build->key && enter(d, root, sizeof root, &file)) {
        if (follow(root, build->key, folder, path, sizeof path) &&
            is_touched(path, &build->since)) {
            use(folder);
        } else {
            /* more than one: other processes build, too */
            each_program(root, look_at, &search);
            link_to(root, build->key, search.found == 1 ? search.folder : NULL);
        }
        close(file);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- after the last ---- */

static void note_program(void *context, const char *folder)
{
    const struct timespec since = {*(const time_t *)context, 0};

    if (is_touched(folder, &since)) /* others are not ours */
        tfm__pocl_files_note(folder);
}

void tfm__cl_pocl_cache_note(const struct tfm__cl_device *d)
{
    char root[PATH_MAX], path[PATH_MAX];
    int file;

    pthread_mutex_lock(&lock);
    if (used.since && enter(d, root, sizeof root, &file)) {
        for (uint32_t i = 0; i < used.n; i++) {
            if (snprintf(path, sizeof path, "%s/%s", root, used.folders[i]) < (int)sizeof path)
                tfm__pocl_files_note(path);
        }
        if (used.unknown)
            each_program(root, note_program, &used.since);
        close(file);
    }
    pthread_mutex_unlock(&lock);
}
