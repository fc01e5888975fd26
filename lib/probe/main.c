/* SPDX-License-Identifier: MIT
 * `tfm-probe SECONDS FILE`: loads a module and calls its probe in a process of its own, and prints
 * "passed", or a line with what became of that process and one with the name of the backend, if it came so
 * far. The library asks it about modules from outside before it loads
 * them (lib/core/trial.c). */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/core/trial.h"
#include "lib/probe/trial.h"

enum {
    WORDS = 200,
    LOOK = 100 /* milliseconds after which the child is looked at anyway */
};

/* One of the pipes that the child writes to: its last line that is not empty, the one in the making. */
struct lines {
    int from; /* -1 once it was closed */
    char last[WORDS], next[WORDS];
    size_t used;
};

struct watch {
    pid_t child;
    struct lines stages, output; /* how far it came; what it prints */
    char name[WORDS];
};

static int64_t milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- the child ---------------------------------------------------------------------------------- */

static int start(struct watch *watch, const char *file)
{
    int stages[2], output[2];

    if (pipe2(stages, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0)
        return 0;
    watch->child = fork(); /* this process has one thread and has loaded nothing */
    if (watch->child < 0)
        return 0;
    if (watch->child == 0) {
        setpgid(0, 0);
        /* the answer is the watcher's alone: what a driver prints must not get into it */
        dup2(output[1], STDOUT_FILENO);
        dup2(output[1], STDERR_FILENO);
        close(stages[0]);
        close(output[0]);
        close(output[1]);
        tfm__try_module(file, stages[1]);
    }
    setpgid(watch->child, watch->child);
    close(stages[1]);
    close(output[1]);
    watch->stages.from = stages[0];
    watch->output.from = output[0];
    watch->stages.last[0] = TFM__STAGE_START;
    return 1;
}

/* ---- what it does ------------------------------------------------------------------------------- */

static void keep_line(struct lines *lines)
{
    lines->next[lines->used] = '\0';
    if (lines->used > 0)
        memcpy(lines->last, lines->next, lines->used + 1);
    lines->used = 0;
}

/* Takes what is there; 0 when the other end is closed, and then so is this one. */
static int take(struct lines *lines)
{
    char bytes[512];
    const ssize_t n = read(lines->from, bytes, sizeof bytes);

    if (n < 0 && errno == EINTR)
        return 1;
    if (n <= 0) {
        close(lines->from);
        lines->from = -1; /* poll passes over it */
        return 0;
    }
    for (ssize_t i = 0; i < n; i++) {
        if (bytes[i] == '\n')
            keep_line(lines);
        else if (lines->used + 1 < sizeof lines->next)
            lines->next[lines->used++] = isprint((unsigned char)bytes[i]) ? bytes[i] : ' ';
    }
    return 1;
}

static void take_stages(struct watch *watch)
{
    if (take(&watch->stages) && watch->stages.last[0] == TFM__STAGE_PROBE)
        strcpy(watch->name, watch->stages.last + 1);
}

/* Without taking it: its number stays its own until it was killed. */
static int has_ended(const struct watch *watch)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)watch->child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid == watch->child;
}

/* Until the tried process came back or ended. Its pipes do not decide: what it has started itself may hold
 * them. 0 = the time is over; -1 = whoever asked has gone. */
static int listen_to(struct watch *watch, int64_t limit)
{
    const int64_t end = milliseconds() + limit;

    while (watch->stages.last[0] != TFM__STAGE_DONE && !has_ended(watch)) {
        struct pollfd wait[] = {{.fd = watch->stages.from, .events = POLLIN},
                                {.fd = watch->output.from, .events = POLLIN},
                                {.fd = STDOUT_FILENO, .events = 0}};
        const int64_t left = end - milliseconds();
        const int nap = watch->stages.from < 0 ? 1 : LOOK;
        if (left <= 0)
            return 0;
        if (poll(wait, 3, left < nap ? (int)left : nap) < 0)
            continue;
        if (wait[2].revents & (POLLERR | POLLNVAL))
            return -1;
        if (wait[1].revents)
            take(&watch->output);
        if (wait[0].revents)
            take_stages(watch);
    }
    return 1;
}

static int is_waiting(const struct lines *lines)
{
    struct pollfd wait = {.fd = lines->from, .events = POLLIN};
    return lines->from >= 0 && poll(&wait, 1, 0) > 0;
}

/* What was on its way when it ended: a pipe holds 64 KiB. A process that it has started may go on writing. */
static void drain(struct watch *watch)
{
    for (int i = 0; i < 128 && is_waiting(&watch->stages); i++)
        take_stages(watch);
    for (int i = 0; i < 128 && is_waiting(&watch->output); i++)
        take(&watch->output);
    keep_line(&watch->output);
}

/* ---- the answer --------------------------------------------------------------------------------- */

static const char *where(const struct watch *watch)
{
    switch (watch->stages.last[0]) {
    case TFM__STAGE_LOAD:
        return "in its constructor";
    case TFM__STAGE_PROBE:
        return "in probe";
    default:
        return "before it was loaded";
    }
}

static void answer(const struct watch *watch, int in_time, int seconds, int status)
{
    if (watch->stages.last[0] == TFM__STAGE_DONE && in_time) {
        puts(TFM__TRIAL_PASSED);
        return;
    }
    if (!in_time)
        printf("no answer after %d s %s", seconds, where(watch));
    else if (WIFSIGNALED(status))
        printf("killed by signal %d (%s) %s", WTERMSIG(status), strsignal(WTERMSIG(status)),
               where(watch));
    else
        printf("exit code %d %s", WEXITSTATUS(status), where(watch));
    if (watch->output.last[0])
        printf("; its last words: %s", watch->output.last);
    printf("\n%s\n", watch->name);
}

/* Whoever asks may have closed its standard error: nothing else may get that number. */
static void open_standard_streams(void)
{
    int file = 0;
    while (file >= 0 && file <= STDERR_FILENO)
        file = open("/dev/null", O_RDWR);
    if (file >= 0)
        close(file);
}

int main(int argc, char **argv)
{
    struct watch watch = {0};
    int status = 0;
    const int seconds = argc == 3 ? atoi(argv[1]) : 0;

    if (seconds <= 0 || argv[2][0] != '/') {
        fprintf(stderr,
                "usage: tfm-probe SECONDS /PATH/OF/MODULE.so\n"
                "Loads a TFM backend in a process of its own and says whether that survives.\n");
        return 2;
    }
    open_standard_streams();
    if (!start(&watch, argv[2])) {
        printf("no process for it: %s\n", strerror(errno));
        return 1;
    }
    const int heard = listen_to(&watch, 1000 * (int64_t)seconds);
    /* also what it has started itself, and a thread that keeps it alive */
    kill(-watch.child, SIGKILL);
    while (waitpid(watch.child, &status, 0) < 0 && errno == EINTR)
        ;
    if (heard < 0)
        return 1;
    drain(&watch);
    answer(&watch, heard, seconds, status);
    return 0;
}
