/* SPDX-License-Identifier: MIT
 * Does a persistent kernel work here? OpenCL does not promise that work-groups run at the same time; this
 * device has to show it, and how long a poll takes. */
#include <stdio.h>
#include <time.h>

#include "backends/opencl/few.h"
#include "backends/opencl/workers.h"

/* This many barriers, at most so many us each, in one of a few tries; the bound of a wait. */
enum { BARRIERS = 1000, BARRIER_US = 2, TRIES = 10, BOUND_US = 100 };

/* Polls that are timed, so often; what a bound may be, and is when the clock tells nothing. */
enum { CALIBRATION = 1 << 14, TIMES = 3, POLLS_MOST = 50000, POLLS = 4000 };

static double microseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Processors that the units of a CPU device can have at the same time. */
static uint32_t parts_of(const struct tfm__cl_device *d)
{
    const uint32_t parts = d->units < TFM_CONTROL_PARTS ? d->units : TFM_CONTROL_PARTS;
    const uint32_t processors = tfm__cl_processors();

    return processors > 0 && processors < parts ? processors : parts;
}

/* n - 1 barriers; *best gets smaller if all parts came through in less. */
static enum tfm_status time_barriers(struct tfm__cl_exec *e, uint32_t n, uint32_t parts,
                                     uint32_t groups, uint32_t polls, uint32_t expected,
                                     double *best, struct tfm_error *err)
{
    uint32_t left = 0;
    const double before = microseconds();
    enum tfm_status status = tfm__cl_few_upload(e, err);

    if (status == TFM_STATUS_OK)
        status = tfm__cl_few_persist(e, e->few->nothing, 0, n, parts, groups, polls, &left, err);
    const double us = microseconds() - before;
    if (left == expected && us < *best)
        *best = us;
    return status;
}

/* How many polls take as long as the bound: one part waits for another that does not come. */
static enum tfm_status calibrate(struct tfm__cl_exec *e, struct tfm_error *err)
{
    double none = 1e9, many = 1e9;
    enum tfm_status status = TFM_STATUS_OK;

    for (int i = 0; i < TIMES && status == TFM_STATUS_OK; i++) {
        status = time_barriers(e, 2, 2, 1, 0, 1, &none, err);
        if (status == TFM_STATUS_OK)
            status = time_barriers(e, 2, 2, 1, CALIBRATION, 1, &many, err);
    }
    const double polls = many > none ? BOUND_US * (CALIBRATION / (many - none)) : POLLS;
    e->device->few_polls = polls < 1 ? 1 : polls < POLLS_MOST ? (uint32_t)polls : POLLS_MOST;
    return status;
}

enum tfm_status tfm__cl_few_prove(struct tfm__cl_exec *e, struct tfm_error *err)
{
    struct tfm__cl_device *d = e->device;
    const int32_t stall = e->few->staging[TFM_CONTROL_STALL];
    double best = 1e9;
    char text[200];

    d->few_parts = parts_of(d);
    e->few->staging[TFM_CONTROL_STALL] = 0; /* that is for the steps of the program */
    enum tfm_status status = d->few_parts > 1 ? calibrate(e, err) : TFM_STATUS_OK;
    for (int i = 0; i < TRIES && best > BARRIERS * BARRIER_US && status == TFM_STATUS_OK; i++)
        status = time_barriers(e, BARRIERS + 1, d->few_parts, d->few_parts, d->few_polls,
                               BARRIERS + 1, &best, err);
    e->few->staging[TFM_CONTROL_STALL] = stall;
    if (status != TFM_STATUS_OK)
        return status;
    d->few_proven =
        best <= BARRIERS * BARRIER_US || d->settings.persistent == TFM__CL_PERSISTENT_ON;
    if (d->few_proven)
        snprintf(text, sizeof text,
                 "persistent kernel: %u parts, a barrier takes %.2f us, a wait at most %d us, that "
                 "is %u polls",
                 d->few_parts, best / BARRIERS, BOUND_US, d->few_polls);
    else
        snprintf(text, sizeof text,
                 "persistent kernel: not now, %d barriers of %u parts were not done in %d us each; "
                 "phases are launched one by one",
                 BARRIERS, d->few_parts, BARRIER_US);
    d->host->log(TFM_LOG_INFO, "opencl", text);
    return TFM_STATUS_OK;
}
