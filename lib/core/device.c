/* SPDX-License-Identifier: MIT
 * Open devices: reference-counted, one for each device of a backend however many ask for it, so
 * that what hangs on a device (packed weights, built programs) exists once. */
#include "lib/core/device.h"

#include <stdio.h>
#include <string.h>

#include "lib/core/ageing.h"
#include "lib/core/alloc.h"
#include "lib/core/auto.h"
#include "lib/core/env.h"
#include "lib/core/host.h"
#include "lib/core/registry.h"

struct tfm_device {
    struct tfm__entry *entry; /* held */
    struct tfm_device *next;  /* in entry->devices */
    unsigned references;      /* guarded by entry->lock, as the list is */
    uint32_t index;
    uint32_t threads; /* that were allowed when it was opened */
    enum tfm_device_kind kind;
    void *handle;
    struct tfm_device_caps caps;
    char name[TFM__DEVICE_NAME];
};

/* Whoever still has a lost device keeps it and its failures; who opens it now gets a new one. */
static int is_lost(const struct tfm_device *device)
{
    const struct tfm_backend *table = &device->entry->table;
    struct tfm_error ignored = {0};
    return table->sync && table->sync(device->handle, &ignored) == TFM_STATUS_DEVICE_LOST;
}

/* No place in the probe's list, so never found there: made of objects of the program. */
#define WRAPPED UINT32_MAX

/* A device keeps the threads it was opened with, so one with another number is another device. */
static struct tfm_device *find_open(const struct tfm__entry *entry, uint32_t index)
{
    for (struct tfm_device *device = entry->devices; device; device = device->next) {
        if (device->index == index && device->threads == tfm_threads() && !is_lost(device))
            return device;
    }
    return NULL;
}

/* What a device promises must be in its table. */
static enum tfm_status check_caps(struct tfm_device *device, struct tfm_error *err)
{
    const struct tfm_backend *table = &device->entry->table;

    device->caps.description[sizeof device->caps.description - 1] = '\0';
    if (device->caps.whole_segments && !table->compile)
        return tfm_error_set(err, TFM_STATUS_BACKEND,
                             "its caps say whole_segments, but its table has no compile");
    if (!device->caps.whole_segments && !table->run_node)
        return tfm_error_set(err, TFM_STATUS_BACKEND,
                             "its caps say node by node, but its table has no run_node");
    return TFM_STATUS_OK;
}

static enum tfm_status open_new(struct tfm_device *device, struct tfm_error *err)
{
    const struct tfm_backend *table = &device->entry->table;
    enum tfm_status status = table->open(tfm__host(), device->index, &device->handle, err);

    if (status != TFM_STATUS_OK)
        return tfm_error_set(err, status, "open failed: %s", tfm_status_text(status));
    table->caps(device->handle, &device->caps);
    status = check_caps(device, err);
    if (status != TFM_STATUS_OK)
        table->close(device->handle);
    return status;
}

enum tfm_status tfm__device_open(struct tfm__entry *entry, uint32_t index,
                                 struct tfm_device **device, struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;

    /* Held while the backend opens: the second who asks waits and shares. */
    pthread_mutex_lock(&entry->lock);
    struct tfm_device *found = find_open(entry, index);
    if (found) {
        found->references++;
        goto done;
    }
    found = tfm__alloc(sizeof *found);
    if (!found) {
        status = tfm_error_set(err, TFM_STATUS_NOMEM, "out of memory");
        goto done;
    }
    found->entry = entry;
    found->index = index;
    found->threads = tfm_threads();
    found->references = 1;
    found->kind = entry->probe.devices[index].kind;
    snprintf(found->name, sizeof found->name, "%s", entry->probe.devices[index].name);
    status = open_new(found, err);
    if (status != TFM_STATUS_OK) {
        tfm__free(found);
        goto done;
    }
    tfm__entry_retain(entry);
    found->next = entry->devices;
    entry->devices = found;
done:
    pthread_mutex_unlock(&entry->lock);
    if (status == TFM_STATUS_OK)
        *device = found;
    else
        tfm_error_prefix(err, "%s: device %u (%s)", entry->name, (unsigned)index,
                         entry->probe.devices[index].name);
    return status;
}

enum tfm_status tfm__device_adopt(struct tfm__entry *entry, void *handle, const char *name,
                                  struct tfm_device **device, struct tfm_error *err)
{
    struct tfm_device *made = tfm__alloc(sizeof *made);
    enum tfm_status status;

    if (!made) {
        entry->table.close(handle);
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", entry->name);
    }
    made->entry = entry;
    made->index = WRAPPED;
    made->threads = tfm_threads();
    made->references = 1;
    made->kind = TFM_DEVICE_ACCELERATOR;
    made->handle = handle;
    snprintf(made->name, sizeof made->name, "%s", name);
    entry->table.caps(handle, &made->caps);
    status = check_caps(made, err);
    if (status != TFM_STATUS_OK) {
        tfm_error_prefix(err, "%s: device %s", entry->name, name);
        entry->table.close(handle);
        tfm__free(made);
        return status;
    }
    tfm__entry_retain(entry);
    pthread_mutex_lock(&entry->lock);
    made->next = entry->devices;
    entry->devices = made;
    pthread_mutex_unlock(&entry->lock);
    *device = made;
    return TFM_STATUS_OK;
}

struct tfm_device *tfm_device_retain(struct tfm_device *device)
{
    pthread_mutex_lock(&device->entry->lock);
    device->references++;
    pthread_mutex_unlock(&device->entry->lock);
    return device;
}

void tfm_device_release(struct tfm_device *device)
{
    if (!device)
        return;
    struct tfm__entry *entry = device->entry;
    pthread_mutex_lock(&entry->lock);
    const int last = --device->references == 0;
    if (last) {
        struct tfm_device **link = &entry->devices;
        while (*link != device)
            link = &(*link)->next;
        *link = device->next;
    }
    pthread_mutex_unlock(&entry->lock);
    if (!last)
        return;
    entry->table.close(device->handle);
    tfm__free(device);
    tfm__entry_release(entry);
}

void tfm_device_reject(struct tfm_device *device, const struct tfm_error *why)
{
    tfm__entry_reject(device->entry, device->index, why);
}

const char *tfm_device_backend(const struct tfm_device *device)
{
    return device->entry->name;
}

const char *tfm_device_name(const struct tfm_device *device)
{
    return device->name;
}

uint32_t tfm_device_index(const struct tfm_device *device)
{
    return device->index;
}

enum tfm_device_kind tfm_device_kind(const struct tfm_device *device)
{
    return device->kind;
}

const void *tfm_device_extension(const struct tfm_device *device, const char *name)
{
    const struct tfm_backend *table = &device->entry->table;
    return table->extension ? table->extension(device->handle, name) : NULL;
}

enum tfm_status tfm_device_profile(struct tfm_device *device,
                                   void (*line)(void *context, const char *text), void *context,
                                   struct tfm_error *err)
{
    const struct tfm_profile *profile = tfm_device_extension(device, TFM_PROFILE_EXTENSION);
    const size_t needed = offsetof(struct tfm_profile, finish) + sizeof profile->finish;

    tfm_error_clear(err);
    if (!profile || profile->struct_size < needed || !profile->finish)
        return TFM_STATUS_OK;
    return profile->finish(device->handle, line, context, err);
}

const struct tfm_backend *tfm__device_table(const struct tfm_device *device)
{
    return &device->entry->table;
}

void *tfm__device_handle(const struct tfm_device *device)
{
    return device->handle;
}

const struct tfm_device_caps *tfm__device_caps(const struct tfm_device *device)
{
    return &device->caps;
}

int tfm__device_may_see(const struct tfm_device *device, const struct tfm_node *node, char *reason,
                        size_t size)
{
    return tfm__ageing_may_see(device->entry->table.abi_minor, node, reason, size);
}

int tfm__devices_strict_env(void)
{
    const char *value = tfm__env("TFM_STRICT");
    return value && *value && strcmp(value, "0") != 0;
}

int tfm_node_is_known(uint32_t abi_minor, const struct tfm_node *node, char *reason, size_t size)
{
    return tfm__ageing_may_see(abi_minor, node, reason, size);
}
