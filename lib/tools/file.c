/* SPDX-License-Identifier: MIT
 * Reading whole files, and writing them so that nobody ever sees half of one. */
#include "lib/tools/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/core/checked.h"
#include "lib/tools/interrupt.h"
#include "lib/tools/message.h"

int tfm__file_read_fd(int fd, const char *name, char **data, size_t *size)
{
    char *text = NULL;
    size_t room = 0, n = 0;
    for (;;) {
        if (n == room) {
            size_t more = room ? room : 16384;
            char *grown = tfm__add_size(room, more, &room) ? NULL : realloc(text, room);
            if (!grown) {
                free(text);
                return tfm__failed("%s: out of memory after %zu bytes", name, n);
            }
            text = grown;
        }
        ssize_t got = read(fd, text + n, room - n);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR) {
            int error = errno;
            free(text);
            return tfm__failed("%s: cannot be read: %s", name, strerror(error));
        }
        n += got < 0 ? 0 : (size_t)got;
    }
    *data = text;
    *size = n;
    return 0;
}

int tfm__file_read(const char *path, char **data, size_t *size)
{
    if (strcmp(path, "-") == 0)
        return tfm__file_read_fd(STDIN_FILENO, "standard input", data, size);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return tfm__failed("%s: cannot be opened: %s", path, strerror(errno));
    int failed = tfm__file_read_fd(fd, path, data, size);
    close(fd);
    return failed;
}

/* 0, or errno. */
static int write_all(int fd, const struct tfm__file_part *parts, size_t n_parts)
{
    for (size_t i = 0; i < n_parts; i++) {
        const char *p = parts[i].data;
        size_t left = parts[i].size;
        while (left) {
            ssize_t put = write(fd, p, left);
            if (put < 0 && errno == EINTR)
                continue;
            if (put <= 0)
                return put < 0 ? errno : EIO;
            p += put;
            left -= (size_t)put;
        }
    }
    return 0;
}

static int write_directly(const char *path, const struct tfm__file_part *parts, size_t n_parts)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int error = fd < 0 ? errno : write_all(fd, parts, n_parts);
    if (fd >= 0 && close(fd) && !error)
        error = errno;
    return error ? tfm__failed("%s: cannot be written: %s", path, strerror(error)) : 0;
}

/* 0, or errno; the temporary file is gone after a failure. `mode` of the file that it replaces. */
static int write_and_rename(const char *path, char *temporary, mode_t mode,
                            const struct tfm__file_part *parts, size_t n_parts)
{
    int fd = mkstemp(temporary);
    if (fd < 0)
        return errno;
    int error = write_all(fd, parts, n_parts);
    if (!error && (fchmod(fd, mode) || fsync(fd)))
        error = errno;
    if (close(fd) && !error)
        error = errno;
    if (!error && rename(temporary, path))
        error = errno;
    if (error)
        unlink(temporary);
    return error;
}

int tfm__file_write(const char *path, const struct tfm__file_part *parts, size_t n_parts)
{
    char target[PATH_MAX], temporary[PATH_MAX + 16];
    struct stat old;
    struct tfm__signals held;
    mode_t mask = umask(0);
    umask(mask);
    mode_t mode = 0666 & ~mask;

    if (stat(path, &old) == 0) {
        if (!S_ISREG(old.st_mode))
            return S_ISDIR(old.st_mode) ? tfm__failed("%s: is a folder: name a file in it", path)
                                        : write_directly(path, parts, n_parts);
        mode = old.st_mode & 0777;
    }
    /* through a link to the file itself, which the rename would replace */
    if (!realpath(path, target) &&
        snprintf(target, sizeof target, "%s", path) >= (int)sizeof target)
        return tfm__failed("%s: the name is too long", path);
    const char *slash = strrchr(target, '/');
    int folder = slash ? (int)(slash - target + 1) : 0;
    snprintf(temporary, sizeof temporary, "%.*s.tfm-XXXXXX", folder, target);

    /* no temporary file stays behind when the user ends the program just now */
    tfm__signals_hold(&held);
    int error = write_and_rename(target, temporary, mode, parts, n_parts);
    tfm__signals_release(&held);
    return error ? tfm__failed("%s: cannot be written: %s", path, strerror(error)) : 0;
}
