/* SPDX-License-Identifier: MIT
 * Is what PoCL has compiled still what it was? A file is compared with its sum while it is the file that
 * was noted (the same inode): damage changes a file, PoCL replaces it. */
#include "backends/opencl/pocl_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH = 4, PIECE = 32768, NOTES = 256, PATH_SIZE = 3 * (NAME_MAX + 1) + 1 };

static const char sums_name[] = "tfm-sums";

struct note {
    uint64_t sum, size, inode;
    char path[PATH_SIZE]; /* below the folder */
};

struct notes {
    struct note note[NOTES];
    size_t n;
};

/* ---- one file ---- */

uint64_t tfm__pocl_files_sum(uint64_t h, const void *data, size_t n)
{
    const unsigned char *bytes = data;

    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, n - i < 8 ? n - i : 8);
        h = (h ^ word) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    return h;
}

static uint64_t number(const unsigned char *bytes, size_t n)
{
    uint64_t value = 0;
    while (n-- > 0)
        value = value << 8 | bytes[n];
    return value;
}

/* ELF of 64 bits: the section headers are the last part that a linker writes. */
static int is_whole_elf(const unsigned char *head, size_t n, uint64_t size)
{
    if (n < 64 || memcmp(head, "\177ELF", 4) != 0)
        return 0;
    if (head[4] != 2 || head[5] != 1)
        return 1; /* of 32 bits or big-endian: not judged */
    const uint64_t at = number(head + 0x28, 8);
    return at < size && number(head + 0x3a, 2) * number(head + 0x3c, 2) <= size - at;
}

/* LLVM bitcode: blocks with their length in words behind a magic number, to the end of the file. */
static int is_whole_bitcode(int file, uint64_t size)
{
    unsigned char head[8];
    uint64_t at = 4;

    if (size < 12 || size % 4 || pread(file, head, 4, 0) != 4 || memcmp(head, "BC\xc0\xde", 4) != 0)
        return 0;
    while (at < size) {
        /* abbreviation 1 of two bits begins a block; its number and width fill the rest of the word */
        if (size - at < 8 || pread(file, head, 8, (off_t)at) != 8 || (head[0] & 3) != 1)
            return 0;
        at += 8 + 4 * number(head + 4, 4);
    }
    return at == size;
}

static int has_end(const char *path, const char *end)
{
    const size_t n = strlen(path), m = strlen(end);
    return n > m && strcmp(path + n - m, end) == 0;
}

/* Size, inode and sum; 0 if it cannot be read. *whole: as far as its headers say. */
static int examine(const char *folder, const char *below, struct note *note, int *whole)
{
    unsigned char piece[PIECE];
    char path[PATH_MAX];
    struct stat info;
    ssize_t got = 0;

    if (snprintf(path, sizeof path, "%s/%s", folder, below) >= (int)sizeof path)
        return 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return 0;
    int ok = fstat(file, &info) == 0;
    *whole = 0;
    if (ok) {
        *note = (struct note){.size = (uint64_t)info.st_size, .inode = (uint64_t)info.st_ino};
        snprintf(note->path, sizeof note->path, "%s", below);
        for (int first = 1; (got = read(file, piece, sizeof piece)) > 0; first = 0) {
            if (first && has_end(below, ".so"))
                *whole = is_whole_elf(piece, (size_t)got, note->size);
            note->sum = tfm__pocl_files_sum(note->sum, piece, (size_t)got);
        }
        if (has_end(below, ".bc"))
            *whole = is_whole_bitcode(file, note->size);
        ok = got == 0;
    }
    close(file);
    return ok;
}

/* ---- all of a folder ---- */

/* Calls visit(context, path below the folder) for each .bc and .so; stops when it returns 0. */
static int each_file(const char *folder, const char *below, int depth,
                     int (*visit)(void *context, const char *path), void *context)
{
    char path[PATH_MAX], next[PATH_SIZE];
    const struct dirent *entry;
    int go_on = 1;

    if (snprintf(path, sizeof path, "%s/%s", folder, below) >= (int)sizeof path || depth == DEPTH)
        return 1;
    DIR *dir = opendir(path);
    while (dir && go_on && (entry = readdir(dir)) != NULL) {
        struct stat info;
        if (entry->d_name[0] == '.' ||
            snprintf(next, sizeof next, "%s%s%s", below, *below ? "/" : "", entry->d_name) >=
                (int)sizeof next ||
            fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (S_ISDIR(info.st_mode))
            go_on = each_file(folder, next, depth + 1, visit, context);
        else if (S_ISREG(info.st_mode) && (has_end(next, ".so") || has_end(next, ".bc")))
            go_on = visit(context, next);
    }
    if (dir)
        closedir(dir);
    return go_on;
}

/* ---- the file of sums ---- */

/* Empty when there is none, or it is damaged itself. */
static void read_notes(const char *folder, struct notes *notes)
{
    char path[PATH_MAX], line[PATH_SIZE + 80];
    uint64_t sum = 0;
    int complete = 0;

    notes->n = 0;
    if (snprintf(path, sizeof path, "%s/%s", folder, sums_name) >= (int)sizeof path)
        return;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        struct note *n = &notes->note[notes->n];
        uint64_t of_lines;
        int at = 0;
        const size_t length = strcspn(line, "\n");
        if (sscanf(line, "end %" SCNx64, &of_lines) == 1) {
            complete = of_lines == sum;
            break;
        }
        sum = tfm__pocl_files_sum(sum, line, length);
        line[length] = 0;
        if (notes->n < NOTES &&
            sscanf(line, "%" SCNx64 " %" SCNu64 " %" SCNu64 " %n", &n->sum, &n->size, &n->inode,
                   &at) == 3 &&
            at > 0 && strlen(line + at) < sizeof n->path) {
            strcpy(n->path, line + at);
            notes->n++;
        }
    }
    if (file)
        fclose(file);
    if (!complete)
        notes->n = 0;
}

/* Whole or not at all: a new file takes the old one's place. */
static void write_notes(const char *folder, const struct notes *notes)
{
    char path[PATH_MAX], made[PATH_MAX], line[PATH_SIZE + 80];
    uint64_t sum = 0;

    if (snprintf(path, sizeof path, "%s/%s", folder, sums_name) >= (int)sizeof path ||
        snprintf(made, sizeof made, "%s/.%s-XXXXXX", folder, sums_name) >= (int)sizeof made)
        return;
    const int file = mkostemp(made, O_CLOEXEC);
    if (file < 0)
        return; /* not ours to write in: it goes without */
    FILE *out = fdopen(file, "w");
    if (!out)
        close(file);
    for (size_t i = 0; out && i < notes->n; i++) {
        const struct note *n = &notes->note[i];
        snprintf(line, sizeof line, "%016" PRIx64 " %" PRIu64 " %" PRIu64 " %s", n->sum, n->size,
                 n->inode, n->path);
        sum = tfm__pocl_files_sum(sum, line, strlen(line));
        fprintf(out, "%s\n", line);
    }
    int ok = out && fprintf(out, "end %016" PRIx64 "\n", sum) > 0 && fflush(out) == 0 &&
             fsync(file) == 0;
    if (out && fclose(out) != 0)
        ok = 0;
    if (!ok || rename(made, path) != 0)
        unlink(made);
}

/* ---- for pocl_cache.c ---- */

struct comparison {
    const char *folder;
    struct notes notes;
    size_t known; /* files that are as they were noted */
    char *damaged;
    size_t size;
};

static const struct note *find(const struct notes *notes, const char *path)
{
    for (size_t i = 0; i < notes->n; i++) {
        if (strcmp(notes->note[i].path, path) == 0)
            return &notes->note[i];
    }
    return NULL;
}

static int compare_file(void *context, const char *path)
{
    struct comparison *c = context;
    const struct note *noted = find(&c->notes, path);
    struct note now;
    int whole;

    if (!examine(c->folder, path, &now, &whole))
        return 1; /* gone meanwhile, or not ours to read */
    if (noted && noted->inode == now.inode)
        whole = noted->size == now.size && noted->sum == now.sum;
    if (!whole)
        snprintf(c->damaged, c->size, "%s", path);
    return whole;
}

int tfm__pocl_files_whole(const char *folder, char *file, size_t size)
{
    struct comparison *c = malloc(sizeof *c);
    int whole = 1;

    if (!c)
        return 1;
    *c = (struct comparison){.folder = folder, .damaged = file, .size = size};
    read_notes(folder, &c->notes);
    whole = each_file(folder, "", 0, compare_file, c);
    free(c);
    return whole;
}

struct collection {
    const char *folder;
    struct notes before, now;
    int changed;
};

static int collect_file(void *context, const char *path)
{
    struct collection *c = context;
    const struct note *noted = find(&c->before, path);
    struct note *to = &c->now.note[c->now.n];
    char full[PATH_MAX];
    struct stat info;
    int whole;

    if (c->now.n == NOTES)
        return 0;
    if (noted && snprintf(full, sizeof full, "%s/%s", c->folder, path) < (int)sizeof full &&
        stat(full, &info) == 0 && (uint64_t)info.st_ino == noted->inode) {
        *to = *noted; /* not read again: what is damaged by now must not become right */
        c->now.n++;
    } else if (examine(c->folder, path, to, &whole) && whole) {
        c->now.n++;
        c->changed = 1;
    }
    return 1;
}

void tfm__pocl_files_note(const char *folder)
{
    struct collection *c = malloc(sizeof *c);

    if (!c)
        return;
    *c = (struct collection){.folder = folder};
    read_notes(folder, &c->before);
    (void)each_file(folder, "", 0, collect_file, c);
    if (c->changed)
        write_notes(folder, &c->now);
    free(c);
}

static void remove_below(const char *path, int depth)
{
    char next[PATH_MAX];
    const struct dirent *entry;
    DIR *dir = opendir(path);

    while (dir && (entry = readdir(dir)) != NULL) {
        struct stat info;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (!S_ISDIR(info.st_mode))
            unlinkat(dirfd(dir), entry->d_name, 0);
        else if (depth < DEPTH &&
                 snprintf(next, sizeof next, "%s/%s", path, entry->d_name) < (int)sizeof next)
            remove_below(next, depth + 1);
    }
    if (dir)
        closedir(dir);
    rmdir(path);
}

void tfm__pocl_files_remove(const char *folder)
{
    remove_below(folder, 0);
}
