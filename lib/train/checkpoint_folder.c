/* SPDX-License-Identifier: MIT
 * The two checkpoints of a folder: which one to go on from, and what killed processes left beside them. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "lib/core/save.h"
#include "lib/train/checkpoint_file.h"

char *tfm__checkpoint_in(const char *folder, const char *name)
{
    const size_t n = strlen(folder);
    const size_t size = n + strlen(name) + 2;
    char *path = malloc(size);

    if (path)
        snprintf(path, size, "%s%s%s", folder, n == 0 || folder[n - 1] == '/' ? "" : "/", name);
    return path;
}

/* As tfm_checkpoint_open, but NOT_FOUND if there is no such file. */
static enum tfm_status open_in(const char *folder, const char *name,
                               struct tfm_checkpoint **checkpoint, struct tfm_error *err)
{
    struct stat facts;
    enum tfm_status status;
    char *path = tfm__checkpoint_in(folder, name);

    if (!path)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", folder);
    if (lstat(path, &facts) != 0 && errno == ENOENT)
        status = tfm_error_set(err, TFM_STATUS_NOT_FOUND, "%s: is missing", path);
    else
        status = tfm_checkpoint_open(path, checkpoint, err);
    free(path);
    return status;
}

enum tfm_status tfm_checkpoint_open_latest(const char *folder, struct tfm_checkpoint **checkpoint,
                                           struct tfm_error *passed_over, struct tfm_error *err)
{
    struct tfm_error last = {0}, previous = {0};
    enum tfm_status status;

    tfm_error_clear(err);
    tfm_error_clear(passed_over);
    status = open_in(folder, TFM_CHECKPOINT_LAST, checkpoint, &last);
    if (status == TFM_STATUS_OK)
        return status;
    if (status != TFM_STATUS_NOT_FOUND && status != TFM_STATUS_FORMAT)
        return tfm_error_set(err, status, "%s", last.text);
    const enum tfm_status second = open_in(folder, TFM_CHECKPOINT_PREVIOUS, checkpoint, &previous);
    if (second == TFM_STATUS_OK) {
        tfm_error_set(passed_over, status, "%.700s; going on from %.200s, the one before it",
                      last.text, tfm_checkpoint_path(*checkpoint));
        return TFM_STATUS_OK;
    }
    if (status == TFM_STATUS_NOT_FOUND && second == TFM_STATUS_NOT_FOUND)
        return tfm_error_set(err, TFM_STATUS_NOT_FOUND,
                             "%s: holds no checkpoint (" TFM_CHECKPOINT_LAST
                             " or " TFM_CHECKPOINT_PREVIOUS ")",
                             folder);
    /* a damaged one must not look like a folder to begin afresh in */
    return tfm_error_set(err, status == TFM_STATUS_NOT_FOUND ? second : status, "%.450s; %.450s",
                         last.text, previous.text);
}

/* 1 for .tfm-PROCESS-NUMBER, as save.h names them, and the second link to a checkpoint of checkpoint_write.c. */
static int is_temporary(const char *name)
{
    const size_t prefix = sizeof TFM__SAVE_PREFIX - 1;
    size_t n;

    if (strncmp(name, TFM__SAVE_PREFIX, prefix) != 0)
        return 0;
    name += prefix;
    n = strspn(name, "0123456789");
    if (n == 0 || name[n] != '-')
        return 0;
    name += n + 1;
    n = strspn(name, "0123456789");
    return n > 0 && (name[n] == '\0' || strcmp(name + n, TFM__CHECKPOINT_SECOND) == 0);
}

/* Who writes one holds a lock on it, which ends with the process, however that ends. */
static void remove_if_left(int folder, const char *name)
{
    struct stat facts;
    const int how = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = openat(folder, name, O_RDWR | how);

    if (fd < 0 && errno == EACCES)
        fd = openat(folder, name, O_RDONLY | how);

    if (fd < 0)
        return;
    if (fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(fd);
}

void tfm__checkpoint_clean(const char *folder)
{
    DIR *entries = opendir(folder);

    /* what cannot be taken away does no harm but for its size */
    if (!entries)
        return;
    for (const struct dirent *entry = readdir(entries); entry; entry = readdir(entries))
        if (is_temporary(entry->d_name))
            remove_if_left(dirfd(entries), entry->d_name);
    closedir(entries);
}
