/* SPDX-License-Identifier: MIT
 * A file that is old or new, never half: a temporary one beside it, fsync, rename, fsync of the
 * folder. Header-only, so that every library can use it. */
#ifndef TFM__CORE_SAVE_H
#define TFM__CORE_SAVE_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tfm/status.h>

struct tfm__save {
    int fd;              /* -1 = none open */
    int direct;          /* no regular file (a pipe, /dev/null): written to as it is */
    char name[PATH_MAX]; /* as the caller gave it: for errors */
    char target[PATH_MAX], temporary[PATH_MAX + 48];
};

static inline enum tfm_status tfm__save_fail(const struct tfm__save *save, int error,
                                             struct tfm_error *err)
{
    return tfm_error_set(err, TFM_STATUS_IO, "%s: cannot be written: %s", save->name,
                         strerror(error));
}

/* Takes the temporary file away; the old one is as it was. Does nothing when none is open. */
static inline void tfm__save_abandon(struct tfm__save *save)
{
    if (save->fd < 0)
        return;
    close(save->fd);
    save->fd = -1;
    if (!save->direct)
        unlink(save->temporary);
}

/* What names of temporary files begin with; the process and a number follow. */
#define TFM__SAVE_PREFIX ".tfm-"

/* Locks a temporary file that was just made, so that nobody takes it for one of a process that was killed (see
 * tfm__checkpoint_clean): 0 if somebody has just done so. Where files cannot be locked, none is taken away. */
static inline int tfm__save_own(int fd)
{
    struct stat facts;

    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return errno != EWOULDBLOCK;
    return fstat(fd, &facts) == 0 && facts.st_nlink > 0;
}

/* A new file beside the target that nobody else has; 0 or errno. The umask applies. */
static inline int tfm__save_open(struct tfm__save *save)
{
    const char *slash = strrchr(save->target, '/');
    const int folder = slash ? (int)(slash - save->target + 1) : 0;

    for (int attempt = 0; attempt < 1000; attempt++) {
        snprintf(save->temporary, sizeof save->temporary, "%.*s" TFM__SAVE_PREFIX "%lld-%d", folder,
                 save->target, (long long)getpid(), attempt);
        save->fd = open(save->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (save->fd < 0 && errno != EEXIST)
            break;
        if (save->fd >= 0 && tfm__save_own(save->fd))
            break;
        if (save->fd >= 0)
            close(save->fd);
        save->fd = -1;
        errno = EEXIST;
    }
    return save->fd < 0 ? errno : 0;
}

/* The temporary file, with the rights `mode` if it is not 0; 0 or errno. */
static inline int tfm__save_start(struct tfm__save *save, mode_t mode)
{
    int error = tfm__save_open(save);

    if (error == 0 && mode && fchmod(save->fd, mode) != 0) {
        error = errno;
        tfm__save_abandon(save);
    }
    return error;
}

/* Opens the temporary file. IO (errno in words; a folder of that name). */
static inline enum tfm_status tfm__save_begin(struct tfm__save *save, const char *path,
                                              struct tfm_error *err)
{
    struct stat old;

    save->fd = -1;
    save->direct = 0;
    snprintf(save->name, sizeof save->name, "%s", path);
    /* through a link to the file itself, which the rename would replace */
    if (!realpath(path, save->target) &&
        snprintf(save->target, sizeof save->target, "%s", path) >= (int)sizeof save->target)
        return tfm_error_set(err, TFM_STATUS_IO, "%.60s...: the name is too long", path);
    const int exists = stat(save->target, &old) == 0;
    if (exists && S_ISDIR(old.st_mode))
        return tfm_error_set(err, TFM_STATUS_IO, "%s: is a folder: name a file in it", path);
    save->direct = exists && !S_ISREG(old.st_mode);
    if (save->direct) {
        save->fd = open(save->target, O_WRONLY | O_CLOEXEC);
        return save->fd < 0 ? tfm__save_fail(save, errno, err) : TFM_STATUS_OK;
    }
    const int error = tfm__save_start(save, exists ? old.st_mode & 0777 : 0);
    return error ? tfm__save_fail(save, error, err) : TFM_STATUS_OK;
}

/* Writes all of it, or IO after which nothing new is left behind. */
static inline enum tfm_status tfm__save_put(struct tfm__save *save, const void *data, size_t size,
                                            struct tfm_error *err)
{
    const char *p = data;

    while (size > 0) {
        ssize_t put = write(save->fd, p, size);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            int error = put < 0 ? errno : EIO;
            tfm__save_abandon(save);
            return tfm__save_fail(save, error, err);
        }
        p += put;
        size -= (size_t)put;
    }
    return TFM_STATUS_OK;
}

/* A rename is on the disk when its folder is. Some file systems cannot sync a folder (EINVAL). */
static inline int tfm__save_sync_folder(const char *target)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(target, '/');
    int error = 0;

    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - target + 1) : 1,
             slash ? target : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    if (fsync(fd) != 0 && errno != EINVAL)
        error = errno;
    close(fd);
    return error;
}

/* The data are on the disk and nobody writes them any more; 0, or errno after which nothing new is left behind. The
 * file stays locked until it has its name: close what is put into *lock (-1 = nothing). */
static inline int tfm__save_settle(struct tfm__save *save, int *lock)
{
    int error = 0, fd = save->fd;

    *lock = -1;
    if (!save->direct && fsync(fd) != 0)
        error = errno;
    if (!save->direct && !error)
        *lock = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    save->fd = -1;
    if (close(fd) != 0 && !error)
        error = errno;
    if (error && !save->direct)
        unlink(save->temporary);
    return error;
}

/* Makes the temporary file the file. After IO nothing new is left behind. */
static inline enum tfm_status tfm__save_finish(struct tfm__save *save, struct tfm_error *err)
{
    int lock, error = tfm__save_settle(save, &lock);

    if (!save->direct && !error && rename(save->temporary, save->target) != 0) {
        error = errno;
        unlink(save->temporary);
    }
    if (lock >= 0)
        close(lock);
    if (!save->direct && !error)
        error = tfm__save_sync_folder(save->target);
    return error ? tfm__save_fail(save, error, err) : TFM_STATUS_OK;
}

#endif
