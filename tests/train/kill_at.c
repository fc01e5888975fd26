/* SPDX-License-Identifier: MIT
 * kill_at SIGNAL SAVES MICROSECONDS FOLDER COMMAND...: runs a command and sends it a signal so many microseconds after it has
 * made its temporary file number SAVES in the folder, or after its start if SAVES is 0. Prints "killed" and exits with 0
 * when the command ended by SIGKILL, else with the command's exit code. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TEMPORARY ".tfm-" /* as lib/core/save.h names them */

static int fail(const char *what)
{
    fprintf(stderr, "kill_at: %s: %s\n", what, strerror(errno));
    return 99;
}

/* How many of the events say that a temporary file was made. */
static long created(const char *events, ssize_t size)
{
    long n = 0;

    for (ssize_t at = 0; at < size;) {
        struct inotify_event event;
        memcpy(&event, events + at, sizeof event);
        n += event.len > 0 &&
             strncmp(events + at + sizeof event, TEMPORARY, sizeof TEMPORARY - 1) == 0;
        at += (ssize_t)(sizeof event + event.len);
    }
    return n;
}

/* Until there were so many, or the child has ended. */
static int wait_for_saves(int watch, pid_t child, long saves)
{
    struct pollfd ready = {.fd = watch, .events = POLLIN};
    char events[8192];

    while (saves > 0) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid)
            return 0;
        if (poll(&ready, 1, 20) <= 0)
            continue;
        const ssize_t size = read(watch, events, sizeof events);
        if (size < 0 && errno != EINTR)
            return fail("inotify");
        saves -= size > 0 ? created(events, size) : 0;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: kill_at SIGNAL SAVES MICROSECONDS FOLDER COMMAND...\n");
        return 99;
    }
    const int number = atoi(argv[1]);
    const long saves = atol(argv[2]), delay = atol(argv[3]);
    const struct timespec time = {delay / 1000000, delay % 1000000 * 1000};
    const int watch = inotify_init1(IN_CLOEXEC);

    if (watch < 0 || inotify_add_watch(watch, argv[4], IN_CREATE) < 0)
        return fail(argv[4]);
    const pid_t child = fork();
    if (child < 0)
        return fail("fork");
    if (child == 0) {
        execvp(argv[5], argv + 5);
        _exit(fail(argv[5]));
    }
    int result = wait_for_saves(watch, child, saves);
    if (result)
        return result;
    nanosleep(&time, NULL);
    kill(child, number);
    if (waitpid(child, &result, 0) != child)
        return fail("waitpid");
    if (WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL) {
        puts("killed");
        return 0;
    }
    if (WIFSIGNALED(result))
        return 128 + WTERMSIG(result);
    return WEXITSTATUS(result);
}
