/* SPDX-License-Identifier: MIT
 * Asks the helper program about a module. Spawned, not forked: a forked child of a process with threads,
 * or of one that has listed OpenCL devices, may hang in the first lock that it meets. */
#include "lib/core/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/core/alloc.h"
#include "lib/core/env.h"
#include "lib/core/log.h"
#include "lib/core/search.h"

#ifndef TFM_HELPER_DIR
#define TFM_HELPER_DIR "" /* $(pkglibdir) */
#endif
#define HELPER "tfm-probe"

enum {
    SECONDS = 10,
    SECONDS_MAX = 3600,
    SLACK = 5, /* the helper keeps the time; this much later it is taken for dead itself */
    ANSWER = 800,
};

static const char *const words[] = {[TFM_PLUGIN_TRIAL_AUTO] = "auto",
                                    [TFM_PLUGIN_TRIAL_ALL] = "all",
                                    [TFM_PLUGIN_TRIAL_OFF] = "off"};

enum { N_WORDS = sizeof words / sizeof *words };

extern char **environ;

/* ---- settings ----------------------------------------------------------------------------------- */

static atomic_int chosen = TFM_PLUGIN_TRIAL_ENVIRONMENT;
static atomic_uint chosen_seconds;

void tfm_plugin_trial_set(enum tfm_plugin_trial trial, uint32_t seconds)
{
    atomic_store(&chosen, (int)trial);
    atomic_store(&chosen_seconds, seconds);
}

static enum tfm_status read_which(enum tfm_plugin_trial *which, struct tfm_error *err)
{
    const char *text = tfm__env("TFM_PLUGIN_TRIAL");

    *which = (enum tfm_plugin_trial)atomic_load(&chosen);
    if ((unsigned)*which < N_WORDS)
        return TFM_STATUS_OK;
    *which = TFM_PLUGIN_TRIAL_AUTO;
    if (!text || !*text)
        return TFM_STATUS_OK;
    for (int i = 0; i < N_WORDS; i++) {
        if (strcmp(text, words[i]) == 0) {
            *which = (enum tfm_plugin_trial)i;
            return TFM_STATUS_OK;
        }
    }
    return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                         "TFM_PLUGIN_TRIAL: there is no \"%s\" (there are: auto, all, off)", text);
}

static enum tfm_status read_seconds(uint32_t *seconds, struct tfm_error *err)
{
    const char *text = tfm__env("TFM_PLUGIN_TRIAL_SECONDS");
    char *end;

    *seconds = atomic_load(&chosen_seconds);
    if (*seconds > SECONDS_MAX)
        *seconds = SECONDS_MAX;
    if (*seconds > 0)
        return TFM_STATUS_OK;
    *seconds = SECONDS;
    if (!text || !*text)
        return TFM_STATUS_OK;
    const unsigned long value = strtoul(text, &end, 10);
    if (strspn(text, "0123456789") != strlen(text) || *end || value == 0 || value > SECONDS_MAX)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "TFM_PLUGIN_TRIAL_SECONDS: \"%s\" is no number from 1 to %d", text,
                             SECONDS_MAX);
    *seconds = (uint32_t)value;
    return TFM_STATUS_OK;
}

/* Where the helper has to be: beside the library, so that an installation may be moved as a whole. */
static char *find_helper(void)
{
    const char *named = tfm__env("TFM_PLUGIN_TRIAL_HELPER");
    char *beside;

    if (named && *named)
        return tfm__strdup(named);
    beside = tfm__search_beside(HELPER);
    if (beside && access(beside, X_OK) == 0)
        return beside;
    tfm__free(beside);
    return tfm__strdup(TFM_HELPER_DIR "/" HELPER);
}

enum tfm_status tfm__trial_init(struct tfm__trial *trial, struct tfm_error *err)
{
    enum tfm_status status;

    memset(trial, 0, sizeof *trial);
    status = read_which(&trial->which, err);
    if (status == TFM_STATUS_OK)
        status = read_seconds(&trial->seconds, err);
    if (status != TFM_STATUS_OK)
        return status;
    trial->helper = find_helper();
    return trial->helper ? TFM_STATUS_OK
                         : tfm_error_set(err, TFM_STATUS_NOMEM, "registry: out of memory");
}

void tfm__trial_deinit(struct tfm__trial *trial)
{
    tfm__free(trial->helper);
    trial->helper = NULL;
}

enum tfm_status tfm_registry_places(void (*place)(void *context, const char *source,
                                                  const char *path),
                                    void *context)
{
    enum tfm_status status = tfm__search_places(place, context);
    char *helper = status == TFM_STATUS_OK ? find_helper() : NULL;

    if (helper)
        place(context, "helper", helper);
    else
        status = TFM_STATUS_NOMEM;
    tfm__free(helper);
    return status;
}

/* ---- one trial ---------------------------------------------------------------------------------- */

/* Its standard output is `to`; no signal is blocked or ignored in it, whatever this process does; Ctrl-C
 * is not for it. 0 or what errno would be. */
static int spawn(const struct tfm__trial *trial, const char *file, int to, pid_t *child)
{
    const short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    char seconds[16];
    char *const arguments[] = {(char *)HELPER, seconds, (char *)file, NULL};

    snprintf(seconds, sizeof seconds, "%u", (unsigned)trial->seconds);
    sigemptyset(&none);
    sigfillset(&all);
    int code = posix_spawn_file_actions_init(&actions);
    if (code)
        return code;
    code = posix_spawnattr_init(&attributes);
    if (code) {
        posix_spawn_file_actions_destroy(&actions);
        return code;
    }
    /* where the caller has closed its own, `to` may be 1 already: then only its flag is cleared */
    code = posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
    if (!code)
        code = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!code)
        code = posix_spawnattr_setsigmask(&attributes, &none);
    if (!code)
        code = posix_spawnattr_setsigdefault(&attributes, &all);
    if (!code)
        code = posix_spawnattr_setpgroup(&attributes, 0);
    if (!code)
        code = posix_spawnattr_setflags(&attributes, flags);
    if (!code)
        code = posix_spawn(child, trial->helper, &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

static int64_t milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Reads until the helper closes its end. 0 = it did not within the time. */
static int read_answer(int from, int64_t limit, char *answer, size_t size)
{
    const int64_t end = milliseconds() + limit;
    size_t used = 0;

    for (;;) {
        struct pollfd wait = {.fd = from, .events = POLLIN};
        const int64_t left = end - milliseconds();
        char bytes[256];
        const int ready = left > 0 ? poll(&wait, 1, (int)left) : 0;
        if (ready == 0)
            return 0;
        const ssize_t n = ready < 0 ? -1 : read(from, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        for (ssize_t i = 0; i < n && used + 1 < size; i++)
            answer[used++] = bytes[i];
    }
    answer[used] = '\0';
    return 1;
}

/* The second line of an answer, if it can be a name. */
static void take_name(const char *line, char name[TFM__NAME_MAX + 1])
{
    const size_t length = strcspn(line, "\n");
    if (length > 0 && length <= TFM__NAME_MAX && line[length] == '\n') {
        memcpy(name, line, length);
        name[length] = '\0';
    }
}

/* The end of the helper is of no interest: what it found out is in its answer. A program that reaps all
 * its children may have taken it already. */
static void reap(pid_t child)
{
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* Without a helper nothing can be tried: told once, and an error where each module is to be tried. */
static enum tfm_status untried(const struct tfm__trial *trial, const char *file, int code,
                               struct tfm_error *err)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;

    if (trial->which == TFM_PLUGIN_TRIAL_ALL)
        return tfm_error_set(err, TFM_STATUS_PLUGIN,
                             "it cannot be tried: the helper %s cannot be started: %s",
                             trial->helper, strerror(code));
    if (!atomic_flag_test_and_set(&told))
        tfm__log(
            TFM_LOG_WARN, "registry",
            "%s is loaded without a trial, a crash in it would end this program: the helper %s "
            "cannot be started: %s (install it, name it in TFM_PLUGIN_TRIAL_HELPER, or set "
            "TFM_PLUGIN_TRIAL=off)",
            file, trial->helper, strerror(code));
    return TFM_STATUS_OK;
}

enum tfm_status tfm__trial_run(const struct tfm__trial *trial, const char *file, int asked,
                               char name[TFM__NAME_MAX + 1], struct tfm_error *err)
{
    char answer[ANSWER] = "";
    int ends[2], code;
    pid_t child;

    name[0] = '\0';
    if (trial->which == TFM_PLUGIN_TRIAL_OFF || (trial->which == TFM_PLUGIN_TRIAL_AUTO && !asked))
        return TFM_STATUS_OK;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return tfm_error_set(err, TFM_STATUS_PLUGIN, "it cannot be tried: pipe: %s",
                             strerror(errno));
    code = spawn(trial, file, ends[1], &child);
    close(ends[1]);
    if (code) {
        close(ends[0]);
        return untried(trial, file, code, err);
    }
    const int answered =
        read_answer(ends[0], 1000 * (int64_t)(trial->seconds + SLACK), answer, sizeof answer);
    if (!answered)
        kill(-child, SIGKILL);
    close(ends[0]);
    reap(child);
    char *end = strchr(answer, '\n');
    if (end) {
        *end = '\0';
        take_name(end + 1, name);
    }
    if (strcmp(answer, TFM__TRIAL_PASSED) == 0)
        return TFM_STATUS_OK;
    if (!answered || !*answer)
        return tfm_error_set(err, TFM_STATUS_PLUGIN, "it cannot be tried: the helper %s %s",
                             trial->helper, answered ? "ended without an answer" : "hangs");
    return tfm_error_set(err, TFM_STATUS_PLUGIN, "in a trial in a process of its own: %s", answer);
}
