/* SPDX-License-Identifier: MIT
 * Slots that misbehave, for bad.c. */
#ifndef TESTS_PLUGINS_FAULTS_H
#define TESTS_PLUGINS_FAULTS_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tfm/backend.h>

/* In no library: with RTLD_NOW the module that calls it cannot be loaded. */
enum tfm_status tests_plugins_nowhere(const struct tfm_host *host, const char *params,
                                      struct tfm_probe *report, struct tfm_error *err);

static inline enum tfm_status probe_says_no(const struct tfm_host *host, const char *params,
                                            struct tfm_probe *report, struct tfm_error *err)
{
    (void)host, (void)params, (void)err;
    report->usable = 0;
    snprintf(report->reason, sizeof report->reason, "the moon is in the wrong place");
    return TFM_STATUS_OK;
}

static inline enum tfm_status probe_fails(const struct tfm_host *host, const char *params,
                                          struct tfm_probe *report, struct tfm_error *err)
{
    (void)params;
    report->usable = 1;
    return host->error(err, TFM_STATUS_BACKEND, "driver call %d failed\nand left two lines", 42);
}

/* What no check of the library can survive: in the process that loads the module, or in a trial. Each
 * leaves its process id in the file that TFM_TEST_TRACE names, so that a test knows who ran it. */
static inline void leave_trace(void)
{
    const char *path = getenv("TFM_TEST_TRACE");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    fprintf(file, "%ld\n", (long)getpid());
    fclose(file);
}

static inline enum tfm_status probe_crashes(const struct tfm_host *host, const char *params,
                                            struct tfm_probe *report, struct tfm_error *err)
{
    (void)host, (void)params, (void)report, (void)err;
    leave_trace();
    fprintf(stderr, "assertion of a driver failed:\tnothing works\n\n");
    raise(SIGSEGV);
    return TFM_STATUS_OK;
}

static inline enum tfm_status probe_aborts(const struct tfm_host *host, const char *params,
                                           struct tfm_probe *report, struct tfm_error *err)
{
    (void)host, (void)params, (void)report, (void)err;
    abort();
}

static inline enum tfm_status probe_exits(const struct tfm_host *host, const char *params,
                                          struct tfm_probe *report, struct tfm_error *err)
{
    (void)host, (void)params, (void)report, (void)err;
    puts("passed"); /* in the words of the trial itself */
    fflush(stdout);
    exit(0);
}

static inline enum tfm_status probe_hangs(const struct tfm_host *host, const char *params,
                                          struct tfm_probe *report, struct tfm_error *err)
{
    (void)host, (void)params, (void)report, (void)err;
    leave_trace();
    while (pause() < 0) /* always */
        ;
    return TFM_STATUS_OK;
}

/* Well, but it leaves a process behind that keeps all it got open. */
static inline enum tfm_status probe_forks(const struct tfm_host *host, const char *params,
                                          struct tfm_probe *report, struct tfm_error *err)
{
    (void)host, (void)params, (void)err;
    leave_trace();
    if (fork() == 0) {
        alarm(20);
        for (;;)
            pause();
    }
    report->usable = 1;
    report->score = 10;
    report->n_devices = 1;
    snprintf(report->devices[0].name, sizeof report->devices[0].name, "forking device");
    return TFM_STATUS_OK;
}

/* Promises what the table does not hold. */
static inline void caps_whole_segments(void *device, struct tfm_device_caps *caps)
{
    (void)device;
    caps->whole_segments = 1;
}

#endif
