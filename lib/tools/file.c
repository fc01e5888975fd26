/* SPDX-License-Identifier: MIT
 * Reading whole files, and writing them so that nobody ever sees half of one. */
#include "lib/tools/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/core/checked.h"
#include "lib/core/save.h"
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

int tfm__file_write(const char *path, const struct tfm__file_part *parts, size_t n_parts)
{
    struct tfm_error err = {0};
    struct tfm__signals held;
    struct tfm__save save;
    struct stat old;
    /* a pipe may take for ever */
    const int ends_soon = stat(path, &old) != 0 || S_ISREG(old.st_mode);

    /* no temporary file stays behind when the user ends the program just now */
    if (ends_soon)
        tfm__signals_hold(&held);
    enum tfm_status status = tfm__save_begin(&save, path, &err);
    for (size_t i = 0; i < n_parts && status == TFM_STATUS_OK; i++)
        status = tfm__save_put(&save, parts[i].data, parts[i].size, &err);
    if (status == TFM_STATUS_OK)
        status = tfm__save_finish(&save, &err);
    if (ends_soon)
        tfm__signals_release(&held);
    return status == TFM_STATUS_OK ? 0 : tfm__failed("%s", err.text);
}
