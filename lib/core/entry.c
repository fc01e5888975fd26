/* SPDX-License-Identifier: MIT
 * One entry of the registry: its lifetime, its row, and the probe that runs when the row is asked
 * for. */
#include <stdio.h>
#include <string.h>

#include "lib/core/alloc.h"
#include "lib/core/host.h"
#include "lib/core/registry.h"

struct tfm__entry *tfm__entry_create(const char *file)
{
    struct tfm__entry *entry = tfm__alloc(sizeof *entry);

    if (!entry)
        return NULL;
    atomic_init(&entry->references, 1);
    pthread_mutex_init(&entry->lock, NULL);
    entry->file = tfm__strdup(file);
    if (entry->file)
        return entry;
    tfm__entry_release(entry);
    return NULL;
}

struct tfm__entry *tfm__entry_retain(struct tfm__entry *entry)
{
    atomic_fetch_add(&entry->references, 1);
    return entry;
}

void tfm__entry_release(struct tfm__entry *entry)
{
    if (!entry || atomic_fetch_sub(&entry->references, 1) != 1)
        return;
    pthread_mutex_destroy(&entry->lock);
    tfm__free(entry->file);
    tfm__free(entry->name);
    tfm__free(entry->version);
    tfm__free(entry->license);
    tfm__free(entry->shadowed_by);
    tfm__free(entry);
}

/* A plugin's text goes into messages of one line: control characters become blanks. */
static void one_line(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = ' ';
    }
}

static void set_reason(struct tfm__entry *entry, const char *reason)
{
    snprintf(entry->reason, sizeof entry->reason, "%s", reason);
    one_line(entry->reason);
}

void tfm__entry_refuse(struct tfm__entry *entry, const char *reason)
{
    memset(&entry->table, 0, sizeof entry->table);
    set_reason(entry, reason);
    entry->row.status = TFM_STATUS_PLUGIN;
}

enum tfm_status tfm__entry_shadow(struct tfm__entry *entry, const struct tfm__entry *first)
{
    entry->shadowed_by = tfm__strdup(first->file);
    return entry->shadowed_by ? TFM_STATUS_OK : TFM_STATUS_NOMEM;
}

enum tfm_status tfm__entry_describe(struct tfm__entry *entry, const char *name, const char *version)
{
    entry->name = tfm__strdup(name ? name : "");
    entry->version = tfm__strdup(version ? version : "");
    entry->license = tfm__strdup(entry->accepted ? entry->table.license : "");
    if (!entry->name || !entry->version || !entry->license)
        return TFM_STATUS_NOMEM;
    one_line(entry->version);
    one_line(entry->license);
    entry->row.name = entry->name;
    entry->row.version = entry->version;
    entry->row.file = entry->file;
    entry->row.reason = entry->reason;
    entry->row.probe = entry->accepted ? &entry->probe : NULL;
    entry->row.license = entry->license;
    entry->row.abi_minor = entry->accepted ? entry->table.abi_minor : 0;
    entry->row.shadowed_by = entry->shadowed_by;
    return TFM_STATUS_OK;
}

/* Makes a report safe to read, whatever the plugin wrote into it. */
static void tidy(struct tfm_probe *probe)
{
    if (probe->n_devices > TFM_PROBE_DEVICES)
        probe->n_devices = TFM_PROBE_DEVICES;
    probe->reason[sizeof probe->reason - 1] = '\0';
    one_line(probe->reason);
    for (uint32_t i = 0; i < probe->n_devices; i++) {
        char *name = probe->devices[i].name, *platform = probe->devices[i].platform;
        name[sizeof probe->devices[i].name - 1] = '\0';
        platform[sizeof probe->devices[i].platform - 1] = '\0';
        one_line(name);
        one_line(platform);
    }
}

static void run_probe(struct tfm__entry *entry)
{
    struct tfm_error why = {0};
    const enum tfm_status status = entry->table.probe(tfm__host(), NULL, &entry->probe, &why);

    tidy(&entry->probe);
    entry->row.status = TFM_STATUS_BACKEND;
    if (status != TFM_STATUS_OK)
        set_reason(entry, why.text[0] ? why.text : "the probe failed and gives no reason");
    else if (!entry->probe.usable)
        set_reason(entry, entry->probe.reason[0] ? entry->probe.reason
                                                 : "the probe says no and gives no reason");
    else if (entry->probe.n_devices == 0)
        set_reason(entry, "the probe found no device");
    else {
        set_reason(entry, entry->probe.reason);
        entry->row.status = TFM_STATUS_OK;
    }
    entry->probe.usable = entry->row.status == TFM_STATUS_OK;
}

const struct tfm_backend_row *tfm__entry_row(struct tfm__entry *entry)
{
    pthread_mutex_lock(&entry->lock);
    if (entry->accepted && !entry->probed)
        run_probe(entry);
    entry->probed = 1;
    pthread_mutex_unlock(&entry->lock);
    return &entry->row;
}
