/* SPDX-License-Identifier: MIT
 * Backends in memory whose probe and open answer as a test wants, and which count who called them. */
#ifndef TESTS_CORE_MOCK_H
#define TESTS_CORE_MOCK_H

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "tests/plugins/stub.h"

struct mock {
    const char *name;
    int32_t usable, score;
    uint32_t n_devices;
    const char *devices[3][2]; /* name, platform */
    enum tfm_status opens;     /* what open returns */
    atomic_int probed, opened, closed;
    uint32_t first; /* devices before this one do not open */
};

static inline enum tfm_status mock_probe(struct mock *mock, struct tfm_probe *report)
{
    usleep(1000); /* so that threads meet here */
    mock->probed++;
    report->usable = mock->usable;
    report->score = mock->score;
    report->n_devices = mock->n_devices;
    if (!mock->usable)
        snprintf(report->reason, sizeof report->reason, "no %s in this machine", mock->name);
    for (uint32_t i = 0; i < mock->n_devices && i < 3; i++) {
        snprintf(report->devices[i].name, sizeof report->devices[i].name, "%s",
                 mock->devices[i][0]);
        snprintf(report->devices[i].platform, sizeof report->devices[i].platform, "%s",
                 mock->devices[i][1]);
    }
    return TFM_STATUS_OK;
}

/* A handle for each open device, which knows its mock. */
struct mock_device {
    const struct tfm_host *host;
    struct mock *mock;
};

static inline enum tfm_status mock_open(struct mock *mock, const struct tfm_host *host,
                                        uint32_t index, void **device, struct tfm_error *err)
{
    usleep(1000);
    mock->opened++;
    if (index < mock->first)
        return host->error(err, TFM_STATUS_BUILD, "%s %u has no compiler", mock->name,
                           (unsigned)index);
    if (mock->opens != TFM_STATUS_OK)
        return host->error(err, mock->opens, "%s is broken", mock->name);
    struct mock_device *made = host->alloc(sizeof *made);
    if (!made)
        return TFM_STATUS_NOMEM;
    made->host = host;
    made->mock = mock;
    *device = made;
    return TFM_STATUS_OK;
}

static inline void mock_close(void *device)
{
    struct mock_device *self = device;
    self->mock->closed++;
    self->host->free(self);
}

/* Slots get no context, so each mock has its own two. */
#define MOCK(id)                                                                                 \
    static struct mock id;                                                                       \
    static enum tfm_status id##_probe(const struct tfm_host *host, const char *params,           \
                                      struct tfm_probe *report, struct tfm_error *err)           \
    {                                                                                            \
        (void)host, (void)params, (void)err;                                                     \
        return mock_probe(&id, report);                                                          \
    }                                                                                            \
    static enum tfm_status id##_open(const struct tfm_host *host, uint32_t index, void **device, \
                                     struct tfm_error *err)                                      \
    {                                                                                            \
        return mock_open(&id, host, index, device, err);                                         \
    }                                                                                            \
    static struct mock id

/* The table of a mock; valid until the next call, which is long enough: the registry copies it. */
#define MOCK_TABLE(id) mock_table(id.name, id##_probe, id##_open)

static inline const struct tfm_backend *
mock_table(const char *name,
           enum tfm_status (*probe)(const struct tfm_host *, const char *, struct tfm_probe *,
                                    struct tfm_error *),
           enum tfm_status (*open)(const struct tfm_host *, uint32_t, void **, struct tfm_error *))
{
    static struct tfm_backend table;
    table = stub_table(name);
    table.probe = probe;
    table.open = open;
    table.close = mock_close;
    return &table;
}

#endif
