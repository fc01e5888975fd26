/* SPDX-License-Identifier: MIT
 * Slots that misbehave, for bad.c. */
#ifndef TESTS_PLUGINS_FAULTS_H
#define TESTS_PLUGINS_FAULTS_H

#include <stdio.h>

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

/* Promises what the table does not hold. */
static inline void caps_whole_segments(void *device, struct tfm_device_caps *caps)
{
    (void)device;
    caps->whole_segments = 1;
}

#endif
