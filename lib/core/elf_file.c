/* SPDX-License-Identifier: MIT
 * dlopen maps the segments of a shared object as its program headers say and touches them at once:
 * if the file is shorter, the process dies of SIGBUS inside dlopen. So this is checked first. */
#include "lib/core/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/core/checked.h"

/* 1 if all of it was there. */
static int read_at(int file, size_t offset, void *to, size_t size)
{
    ssize_t n;
    if (offset > (size_t)INT64_MAX)
        return 0;
    do
        n = pread(file, to, size, (off_t)offset);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)size;
}

/* The end of the furthest segment that is loaded from the file; 0 when the headers cannot be read,
 * which dlopen will find too. */
static size_t segments_end(int file)
{
    ElfW(Ehdr) header;
    ElfW(Phdr) segment;
    size_t furthest = 0, offset, end;

    if (!read_at(file, 0, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_phentsize != sizeof segment)
        return 0;
    for (size_t i = 0; i < header.e_phnum; i++) {
        if (tfm__add_size(header.e_phoff, i * sizeof segment, &offset) ||
            !read_at(file, offset, &segment, sizeof segment))
            return 0;
        if (segment.p_type != PT_LOAD)
            continue;
        if (tfm__add_size(segment.p_offset, segment.p_filesz, &end))
            end = SIZE_MAX;
        if (end > furthest)
            furthest = end;
    }
    return furthest;
}

enum tfm_status tfm__elf_file_check(const char *path, struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;
    struct stat info;
    const int file = open(path, O_RDONLY | O_CLOEXEC);

    if (file < 0)
        return tfm_error_set(err, TFM_STATUS_PLUGIN, "cannot be opened: %s", strerror(errno));
    if (fstat(file, &info) != 0) {
        status = tfm_error_set(err, TFM_STATUS_PLUGIN, "cannot be read: %s", strerror(errno));
    } else {
        const size_t end = segments_end(file);
        if (end > (size_t)info.st_size)
            status = tfm_error_set(err, TFM_STATUS_PLUGIN,
                                   "truncated: %zu bytes long, its segments end at byte %zu: copy "
                                   "it again",
                                   (size_t)info.st_size, end);
    }
    close(file);
    return status;
}
