/* SPDX-License-Identifier: MIT
 * The parent: starts children until all cases are done, and makes a failed case of whatever ends or
 * stops a child. */
#include "lib/check/check.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/check/report.h"

enum { SECONDS = 120, CRASHES = 30, FIELDS = 8, LINE = 8192 };

struct parent {
    const struct tfm__check_options *options;
    const struct tfm__check_sink *sink;
    struct tfm__check_summary *summary;
    struct tfm_error *err;
    uint64_t done;            /* cases */
    char kind[16], name[500]; /* of the case that runs; name "" = none */
    char measuring[500];      /* what is measured, "" = nothing */
    int ended, broken;        /* the child said end; said error */
    char line[LINE];
    size_t used;
};

/* ---- records ---- */

static void finish(struct parent *p, int passed, const char *why)
{
    p->done++;
    if (passed)
        p->summary->passed++;
    else
        p->summary->failed++;
    if (strcmp(p->kind, "node") == 0)
        p->summary->nodes++;
    else
        p->summary->device++;
    if (p->sink->result)
        p->sink->result(p->sink->context, p->kind, p->name, passed, why);
    p->name[0] = '\0';
}

static void on_case(struct parent *p, char **f)
{
    snprintf(p->kind, sizeof p->kind, "%s", f[1]);
    snprintf(p->name, sizeof p->name, "%s", f[2]);
}

static void on_pass(struct parent *p, char **f)
{
    (void)f;
    finish(p, 1, "");
}

static void on_fail(struct parent *p, char **f)
{
    finish(p, 0, f[1]);
}

static void on_skip(struct parent *p, char **f)
{
    p->done++;
    p->summary->skipped++;
    if (p->sink->skipped)
        p->sink->skipped(p->sink->context, p->kind, p->name, f[1]);
    p->name[0] = '\0';
}

static void on_subject(struct parent *p, char **f)
{
    if (p->sink->subject)
        p->sink->subject(p->sink->context, f[1], f[2], f[3], f[4]);
}

static void on_refused(struct parent *p, char **f)
{
    if (p->sink->refused)
        p->sink->refused(p->sink->context, f[1], (uint32_t)strtoul(f[2], NULL, 10),
                         (uint32_t)strtoul(f[3], NULL, 10), f[4]);
}

static void on_note(struct parent *p, char **f)
{
    if (p->sink->note)
        p->sink->note(p->sink->context, f[1]);
}

static void on_measure(struct parent *p, char **f)
{
    snprintf(p->measuring, sizeof p->measuring, "%s %s", f[1], f[2]);
}

static void on_measured(struct parent *p, char **f)
{
    p->measuring[0] = '\0';
    if (p->sink->measured)
        p->sink->measured(p->sink->context, f[1], f[2], (uint32_t)strtoul(f[3], NULL, 10),
                          strtod(f[4], NULL), strtod(f[5], NULL), strtod(f[6], NULL));
}

static void on_error(struct parent *p, char **f)
{
    p->broken = 1;
    p->name[0] = '\0';
    tfm_error_set(p->err, TFM_STATUS_BACKEND, "%s", f[1]);
}

static void on_end(struct parent *p, char **f)
{
    (void)f;
    p->ended = 1;
}

static const struct {
    const char *record;
    int fields; /* beside the record itself */
    void (*take)(struct parent *p, char **f);
} records[] = {
    {TFM__RECORD_CASE, 2, on_case},       {TFM__RECORD_PASS, 0, on_pass},
    {TFM__RECORD_FAIL, 1, on_fail},       {TFM__RECORD_SKIP, 1, on_skip},
    {TFM__RECORD_SUBJECT, 4, on_subject}, {TFM__RECORD_REFUSED, 4, on_refused},
    {TFM__RECORD_NOTE, 1, on_note},       {TFM__RECORD_LOG, 1, on_note},
    {TFM__RECORD_MEASURE, 2, on_measure}, {TFM__RECORD_MEASURED, 6, on_measured},
    {TFM__RECORD_ERROR, 1, on_error},     {TFM__RECORD_END, 0, on_end},
};

static void take_line(struct parent *p, char *line)
{
    char *fields[FIELDS], *at = line;
    int n = 0;

    while (at && n < FIELDS) {
        char *const tab = strchr(at, '\t');
        fields[n++] = at;
        if (tab)
            *tab = '\0';
        at = tab ? tab + 1 : NULL;
    }
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        if (strcmp(fields[0], records[i].record) == 0 && n == records[i].fields + 1)
            records[i].take(p, fields);
    }
}

/* ---- one child ---- */

/* Whole lines of what has come; a line that is too long loses its end. */
static void take_bytes(struct parent *p, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            p->line[p->used] = '\0';
            take_line(p, p->line);
            p->used = 0;
        } else if (p->used + 1 < sizeof p->line) {
            p->line[p->used++] = bytes[i];
        }
    }
}

/* Reads records until the child closes its end. 0 = it did; else the seconds that it said nothing. */
static int listen_to(struct parent *p, int from)
{
    const int limit = p->options->seconds ? p->options->seconds : SECONDS;
    char bytes[4096];

    for (;;) {
        struct pollfd wait = {.fd = from, .events = POLLIN};
        const int ready = poll(&wait, 1, 1000 * limit);
        if (ready == 0)
            return limit;
        if (ready < 0 && errno == EINTR)
            continue;
        const ssize_t n = ready < 0 ? -1 : read(from, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        take_bytes(p, bytes, (size_t)n);
    }
}

static void start_child(const struct parent *p, int to)
{
    struct tfm__report report = {.done = p->done, .failed = p->summary->failed};

    /* what a driver prints is no part of the result */
    dup2(STDERR_FILENO, STDOUT_FILENO);
    report.to = fdopen(to, "w");
    if (!report.to)
        _exit(1);
    tfm__check_child(p->options, &report);
    fflush(report.to);
    _exit(0); /* modules are never unloaded, their destructors never run */
}

static void describe_end(int status, int silent, char *text, size_t size)
{
    if (silent)
        snprintf(text, size, "no answer for %d s: the process was ended", silent);
    else if (WIFSIGNALED(status))
        snprintf(text, size, "crashed: signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, size, "the process ended with exit code %d: a backend must never do that",
                 WEXITSTATUS(status));
}

/* OK when a child was started and has ended, however. */
static enum tfm_status run_child(struct parent *p)
{
    int ends[2], status = 0;
    char why[200];

    p->ended = 0;
    p->used = 0;
    p->name[0] = p->measuring[0] = '\0';
    if (pipe(ends) != 0)
        return tfm_error_set(p->err, TFM_STATUS_IO, "pipe: %s", strerror(errno));
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        start_child(p, ends[1]);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return tfm_error_set(p->err, TFM_STATUS_IO, "fork: %s", strerror(errno));
    }
    const int silent = listen_to(p, ends[0]);
    if (silent)
        kill(child, SIGKILL);
    close(ends[0]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (p->ended)
        return TFM_STATUS_OK;
    describe_end(status, silent, why, sizeof why);
    if (!p->name[0]) { /* not within a case: it becomes one, so that it counts */
        snprintf(p->kind, sizeof p->kind, "device");
        if (p->measuring[0])
            snprintf(p->name, sizeof p->name, "measuring %.400s", p->measuring);
        else
            snprintf(p->name, sizeof p->name, "after case %llu", (unsigned long long)p->done);
        p->ended = 1; /* what comes next would end there again */
    }
    finish(p, 0, why);
    if (p->done == 1) /* not even loaded: no other child will come further */
        p->ended = 1;
    return TFM_STATUS_OK;
}

enum tfm_status tfm__check_run(const struct tfm__check_options *options,
                               const struct tfm__check_sink *sink,
                               struct tfm__check_summary *summary, struct tfm_error *err)
{
    struct parent *p = calloc(1, sizeof *p);
    enum tfm_status status = TFM_STATUS_OK;

    memset(summary, 0, sizeof *summary);
    if (!p)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "out of memory");
    *p = (struct parent){.options = options, .sink = sink, .summary = summary, .err = err};
    for (int crashes = 0; status == TFM_STATUS_OK && !p->ended; crashes++) {
        if (crashes == CRASHES) {
            if (sink->note)
                sink->note(sink->context, "it crashed too often: the rest was left out");
            break;
        }
        status = run_child(p);
    }
    if (status == TFM_STATUS_OK && p->broken)
        status = err->status;
    free(p);
    return status;
}
