/* SPDX-License-Identifier: MIT
 * Saving a checkpoint while the system fails: each system call of a save fails in turn, or is the last that the process
 * makes, writes are short or interrupted, and the process is killed at any moment. Whatever happens, a whole
 * checkpoint is there, and nothing else once the next one was saved. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <check.h>

#include <tfm/checkpoint.h>

#include "tests/folder.h"

static struct tfm_error err;

/* ---- the system, as far as a save uses it: these stand before those of the C library ---- */

enum call { NONE, WRITE, FSYNC, CLOSE, RENAME, LINK, UNLINK };

static struct {
    int armed, count, at; /* call number `at` is the one */
    int error;            /* what it fails with; 0: the process ends there */
    int short_writes;     /* bytes of a write at most; every other one is interrupted */
    int no_links;
    enum call hit;
} fault;

/* 1 if this call must not be made. */
static int struck(enum call call)
{
    if (!fault.armed || fault.count++ != fault.at)
        return 0;
    fault.hit = call;
    if (fault.error == 0)
        _exit(9);
    errno = fault.error;
    return 1;
}

ssize_t write(int fd, const void *data, size_t size)
{
    static int turn;

    if (struck(WRITE))
        return -1;
    if (fault.armed && fault.short_writes) {
        if (turn++ % 2) {
            errno = EINTR;
            return -1;
        }
        size = size < (size_t)fault.short_writes ? size : (size_t)fault.short_writes;
    }
    return syscall(SYS_write, fd, data, size);
}

int fsync(int fd)
{
    return struck(FSYNC) ? -1 : (int)syscall(SYS_fsync, fd);
}

int close(int fd)
{
    /* what failed to close is closed all the same */
    const int fails = struck(CLOSE), error = errno, result = (int)syscall(SYS_close, fd);

    if (fails)
        errno = error;
    return fails ? -1 : result;
}

int rename(const char *from, const char *to)
{
    return struck(RENAME) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
    if (struck(LINK))
        return -1;
    if (fault.armed && fault.no_links) {
        errno = EPERM;
        return -1;
    }
    return (int)syscall(SYS_linkat, from_fd, from, to_fd, to, flags);
}

int unlink(const char *path)
{
    return struck(UNLINK) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

/* ---- folders ---- */

static void leave_folder(void)
{
    folder_leave((const char *const[]){"last.ckpt", "previous.ckpt"}, 2);
}

static int entries(void)
{
    DIR *folder = opendir(".");
    int n = 0;

    ck_assert_ptr_nonnull(folder);
    for (const struct dirent *e = readdir(folder); e; e = readdir(folder))
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(folder);
    return n;
}

/* A checkpoint of generation g with `size` bytes of it. */
static enum tfm_status save(uint64_t g, size_t size)
{
    struct tfm_checkpoint_writer *writer = NULL;
    static unsigned char data[1 << 20];
    enum tfm_status status;

    memset(data, (int)g, size);
    status = tfm_checkpoint_writer_create("last.ckpt", &writer, &err);
    if (status == TFM_STATUS_OK)
        status = tfm_checkpoint_section(writer, "generation", &g, sizeof g, &err);
    if (status == TFM_STATUS_OK)
        status = tfm_checkpoint_section(writer, "data", data, size, &err);
    if (status == TFM_STATUS_OK)
        status = tfm_checkpoint_writer_finish(writer, &err);
    tfm_checkpoint_writer_destroy(writer);
    return status;
}

/* Of the newest whole checkpoint; whether that is last.ckpt goes to *is_last. */
static uint64_t newest(int *is_last)
{
    struct tfm_checkpoint *checkpoint = NULL;
    struct tfm_error over = {0}, why = {0};
    const void *data = NULL;
    size_t size = 0;
    uint64_t g = 0;

    ck_assert_msg(tfm_checkpoint_open_latest(".", &checkpoint, &over, &why) == TFM_STATUS_OK, "%s",
                  why.text);
    ck_assert_int_eq(tfm_checkpoint_find(checkpoint, "generation", &data, &size, &why),
                     TFM_STATUS_OK);
    ck_assert_uint_eq(size, sizeof g);
    memcpy(&g, data, sizeof g);
    tfm_checkpoint_close(checkpoint);
    *is_last = over.status == TFM_STATUS_OK;
    return g;
}

static void damage(const char *path)
{
    FILE *file = fopen(path, "r+b");
    ck_assert(file && fseek(file, 200, SEEK_SET) == 0 && fputc(0x55, file) != EOF &&
              fclose(file) == 0);
}

/* Files of generations 1 and 2, 2 perhaps damaged in its data; how many there are. */
static int begin(int files, int damaged)
{
    fault.armed = 0;
    unlink("last.ckpt");
    unlink("previous.ckpt");
    for (int g = 1; g <= files; g++)
        ck_assert_msg(save((uint64_t)g, 300) == TFM_STATUS_OK, "%s", err.text);
    if (damaged)
        damage("last.ckpt");
    return files;
}

static void arm(int at, int error, int no_links)
{
    memset(&fault, 0, sizeof fault);
    fault.at = at;
    fault.error = error;
    fault.no_links = no_links;
    fault.armed = 1;
}

static const struct {
    int files, damaged, no_links;
} starts[] = {{1, 0, 0}, {2, 0, 0}, {2, 1, 0}, {1, 0, 1}, {2, 0, 1}, {2, 1, 1}};
enum { N_STARTS = sizeof starts / sizeof *starts };

static const int errors[] = {ENOSPC, EIO, EDQUOT};

/* Each call of a save fails once, with errors of a full and of a broken disk.
 * Catches: an error that is not told, an old file that is gone, a temporary file that stays. */
START_TEST(each_call_fails)
{
    const int files = starts[_i].files, damaged = starts[_i].damaged;
    const uint64_t old = (uint64_t)(files - damaged);
    unsigned seen = 0;
    int at = 0, is_last = 0;

    for (;; at++) {
        begin(files, damaged);
        arm(at, errors[at % 3], starts[_i].no_links);
        const enum tfm_status status = save(9, 500);
        fault.armed = 0;
        if (fault.hit == NONE)
            break;
        seen |= 1u << fault.hit;
        const uint64_t now = newest(&is_last);
        if (status == TFM_STATUS_OK) {
            /* what is not needed: another way to keep the old one, the closing of what is on the disk */
            ck_assert_msg(fault.hit == LINK || fault.hit == CLOSE || fault.hit == UNLINK,
                          "call %d of kind %d failed, and nobody said so", at, fault.hit);
            ck_assert_uint_eq(now, 9);
        } else {
            ck_assert_int_eq(status, TFM_STATUS_IO);
            ck_assert_msg(strstr(err.text, "last.ckpt: cannot be written: ") &&
                              strstr(err.text, strerror(errors[at % 3])) &&
                              strstr(err.text, "save again"),
                          "%s", err.text);
            ck_assert_msg(now == old || now == 9, "call %d left generation %d", at, (int)now);
            ck_assert_msg(now == 9 || strstr(err.text, "is as it was"), "%s", err.text);
        }
        if (fault.hit != UNLINK)
            ck_assert_int_le(entries(), 2);
        /* and the next one is as if nothing had been */
        ck_assert_msg(save(10, 500) == TFM_STATUS_OK, "%s", err.text);
        ck_assert_uint_eq(newest(&is_last), 10);
        ck_assert_int_le(entries(), 2);
    }
    ck_assert_int_gt(at, 10);
    ck_assert_uint_eq(seen & (1u << WRITE | 1u << FSYNC | 1u << CLOSE | 1u << RENAME | 1u << LINK),
                      1u << WRITE | 1u << FSYNC | 1u << CLOSE | 1u << RENAME | 1u << LINK);
}
END_TEST

/* The process ends in the place of each call of a save.
 * Catches: a step between two whole files at which there is none. */
START_TEST(each_call_is_the_last)
{
    const int files = starts[_i].files, damaged = starts[_i].damaged;
    const uint64_t old = (uint64_t)(files - damaged);
    int result = 9, old_ones = 0, is_last = 0;

    for (int at = 0; result == 9; at++) {
        begin(files, damaged);
        const pid_t child = fork();
        if (child == 0) {
            arm(at, 0, starts[_i].no_links);
            _exit(save(9, 500) != TFM_STATUS_OK);
        }
        ck_assert_int_eq(waitpid(child, &result, 0), child);
        ck_assert(WIFEXITED(result));
        result = WEXITSTATUS(result);
        ck_assert(result == 0 || result == 9);
        const uint64_t now = newest(&is_last);
        ck_assert_msg(now == old || now == 9, "call %d left generation %d", at, (int)now);
        ck_assert_msg(is_last || damaged || starts[_i].no_links, "call %d left no last.ckpt", at);
        old_ones += now == old;
        ck_assert_msg(save(10, 500) == TFM_STATUS_OK, "%s", err.text);
        ck_assert_uint_eq(newest(&is_last), 10);
        ck_assert_int_le(entries(), 2);
    }
    ck_assert_int_eq(result, 0);
    ck_assert_int_gt(old_ones, 5);
}
END_TEST

/* Catches: bytes lost or written twice when a write does only a part, or is interrupted. */
START_TEST(short_writes)
{
    int is_last = 0;

    arm(-1, EIO, 0);
    fault.short_writes = 37;
    ck_assert_msg(save(5, 5000) == TFM_STATUS_OK, "%s", err.text);
    fault.armed = 0;
    ck_assert_uint_eq(newest(&is_last), 5);
    ck_assert(is_last);
}
END_TEST

/* A limit at which the kernel itself writes a part and then fails.
 * Catches: a file cut at any place that becomes the last one. */
START_TEST(size_limits)
{
    int is_last = 0, failed = 0;
    enum tfm_status status = TFM_STATUS_IO;

    ck_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    begin(2, 0);
    for (rlim_t limit = 1; status != TFM_STATUS_OK; limit += 61) {
        struct rlimit was;
        ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &was), 0);
        const struct rlimit now = {limit, was.rlim_max};
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &now), 0);
        status = save(9, 500);
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &was), 0);
        ck_assert_int_eq(entries(), 2);
        ck_assert_uint_eq(newest(&is_last), status == TFM_STATUS_OK ? 9 : 2);
        if (status != TFM_STATUS_OK) {
            ck_assert_int_eq(status, TFM_STATUS_IO);
            ck_assert_msg(strstr(err.text, "File too large"), "%s", err.text);
            failed++;
        }
    }
    ck_assert_int_gt(failed, 10);
}
END_TEST

/* Saves one after the other until it is killed. */
static void save_for_ever(int pipe_fd)
{
    for (uint64_t g = 100;; g++) {
        if (save(g, 200000 + (size_t)g % 7 * 50000) != TFM_STATUS_OK ||
            syscall(SYS_write, pipe_fd, &g, sizeof g) != sizeof g)
            _exit(1);
    }
}

/* kill -9 at 50 moments. Catches: what the list of calls above does not know of. */
START_TEST(killed_at_any_moment)
{
    unsigned random = 12345;
    int is_last = 0;

    begin(2, 0);
    for (int moment = 0; moment < 50; moment++) {
        int ends[2], result;
        uint64_t finished = 0, g;

        ck_assert_int_eq(pipe(ends), 0);
        const pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            save_for_ever(ends[1]);
        }
        close(ends[1]);
        random = random * 1664525u + 1013904223u;
        const struct timespec time = {0, (long)(random >> 8) % 8000000};
        nanosleep(&time, NULL);
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        ck_assert_int_eq(waitpid(child, &result, 0), child);
        ck_assert(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL);
        while (read(ends[0], &g, sizeof g) == sizeof g)
            finished = g;
        close(ends[0]);
        const uint64_t now = newest(&is_last);
        ck_assert(is_last);
        /* nothing that was told to be saved is lost, and nothing is from nowhere */
        if (finished)
            ck_assert(now == finished || now == finished + 1);
        ck_assert_int_le(entries(), 4); /* the two, a temporary one, a second name */
    }
    ck_assert_msg(save(7, 500) == TFM_STATUS_OK, "%s", err.text);
    ck_assert_int_eq(entries(), 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("checkpoint_faults");
    TCase *tcase = tcase_create("faults");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, folder_enter, leave_folder);
    tcase_add_loop_test(tcase, each_call_fails, 0, N_STARTS);
    tcase_add_loop_test(tcase, each_call_is_the_last, 0, N_STARTS);
    tcase_add_test(tcase, short_writes);
    tcase_add_test(tcase, size_limits);
    tcase_add_test(tcase, killed_at_any_moment);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
