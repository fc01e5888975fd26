/* SPDX-License-Identifier: MIT
 * The list of backends: the reference, what the search path holds, what the program adds. A file
 * that cannot be used keeps a row with its reason, so that nobody has to guess why it is not there.
 */
#include "lib/core/registry.h"

#include <string.h>
#include <sys/stat.h>

#include "lib/core/alloc.h"
#include "lib/core/log.h"
#include "lib/core/plugin.h"
#include "lib/core/search.h"
#include "lib/core/trial.h"

extern const struct tfm_backend tfm__backend_reference; /* backends/reference */

struct tfm_registry {
    pthread_mutex_t lock; /* guards the list; entries have their own */
    struct tfm__entry **entries;
    size_t n, capacity;
};

static enum tfm_status append(struct tfm_registry *registry, struct tfm__entry *entry)
{
    if (registry->n == registry->capacity) {
        const size_t capacity = registry->capacity ? 2 * registry->capacity : 8;
        struct tfm__entry **entries = tfm__alloc_array(capacity, sizeof *entries);
        if (!entries)
            return TFM_STATUS_NOMEM;
        if (registry->n)
            memcpy(entries, registry->entries, registry->n * sizeof *entries);
        tfm__free(registry->entries);
        registry->entries = entries;
        registry->capacity = capacity;
    }
    registry->entries[registry->n++] = entry;
    return TFM_STATUS_OK;
}

static const struct tfm__entry *find_accepted(const struct tfm_registry *registry, const char *name)
{
    for (size_t i = 0; i < registry->n; i++) {
        if (registry->entries[i]->accepted && strcmp(registry->entries[i]->name, name) == 0)
            return registry->entries[i];
    }
    return NULL;
}

/* Checks a table and takes it into the entry. PLUGIN with the reason in err. The caller holds the
 * lock (or is the only one who knows the registry), so a name is not given away twice. */
static enum tfm_status accept_table(const struct tfm_registry *registry, struct tfm__entry *entry,
                                    const struct tfm_backend *table, struct tfm_error *err)
{
    enum tfm_status status = tfm__plugin_check(table, &entry->table, err);
    if (status != TFM_STATUS_OK)
        return status;
    const struct tfm__entry *first = find_accepted(registry, entry->table.name);
    if (first) {
        status = tfm__entry_shadow(entry, first);
        if (status != TFM_STATUS_OK)
            return tfm_error_set(err, status, "registry: out of memory");
        return tfm_error_set(err, TFM_STATUS_PLUGIN,
                             "name \"%s\" already taken by %s, which was found first",
                             entry->table.name, first->file);
    }
    entry->accepted = 1;
    return TFM_STATUS_OK;
}

static int is_listed(const struct tfm_registry *registry, const struct stat *info)
{
    for (size_t i = 0; i < registry->n; i++) {
        const struct tfm__entry *entry = registry->entries[i];
        if (entry->inode != 0 && entry->inode == info->st_ino && entry->device == info->st_dev)
            return 1;
    }
    return 0;
}

struct filling {
    struct tfm_registry *registry;
    struct tfm__trial trial;
};

/* Called by the search for each file. */
static enum tfm_status add_file(void *context, const char *file, int asked, const char *problem)
{
    const struct filling *filling = context;
    struct tfm_registry *registry = filling->registry;
    const struct tfm_backend *table = NULL;
    struct tfm_error why = {0};
    struct stat info = {0};
    char tried[TFM__NAME_MAX + 1] = "";
    enum tfm_status status;

    if (!problem && stat(file, &info) == 0 && is_listed(registry, &info))
        return TFM_STATUS_OK;
    struct tfm__entry *entry = tfm__entry_create(file);
    if (!entry)
        return TFM_STATUS_NOMEM;
    entry->asked = asked;
    entry->device = info.st_dev;
    entry->inode = info.st_ino;

    if (problem)
        status = tfm_error_set(&why, TFM_STATUS_PLUGIN, "cannot be opened: %s", problem);
    else
        status = tfm__plugin_file_check(file, &why);
    if (status == TFM_STATUS_OK)
        status = tfm__trial_run(&filling->trial, file, asked, tried, &why);
    if (status == TFM_STATUS_OK)
        status = tfm__plugin_load(file, &table, &why);
    if (status == TFM_STATUS_OK)
        status = accept_table(registry, entry, table, &why);

    /* A refused table leaves its name and version, if it came so far. */
    const char *name = *tried ? tried : entry->table.name, *version = entry->table.version;
    if (status != TFM_STATUS_OK) {
        tfm__entry_refuse(entry, why.text);
        tfm__log(TFM_LOG_INFO, "registry", "%s: %s", file, entry->reason);
    }
    status = tfm__entry_describe(entry, name, version);
    if (status == TFM_STATUS_OK)
        status = append(registry, entry);
    if (status != TFM_STATUS_OK)
        tfm__entry_release(entry);
    return status;
}

static enum tfm_status add_table(struct tfm_registry *registry, const struct tfm_backend *table,
                                 const char *file, int builtin, struct tfm_error *err)
{
    struct tfm__entry *entry = tfm__entry_create(file);
    if (!entry)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "registry: out of memory");
    entry->builtin = builtin;

    enum tfm_status status = accept_table(registry, entry, table, err);
    if (status == TFM_STATUS_OK) {
        status = tfm__entry_describe(entry, entry->table.name, entry->table.version);
        if (status == TFM_STATUS_OK)
            status = append(registry, entry);
        if (status != TFM_STATUS_OK)
            tfm_error_set(err, status, "registry: out of memory");
    }
    if (status != TFM_STATUS_OK)
        tfm__entry_release(entry);
    return status;
}

enum tfm_status tfm_registry_create(const char *const *plugins, size_t n,
                                    struct tfm_registry **registry, struct tfm_error *err)
{
    struct filling filling;

    tfm_error_clear(err);
    enum tfm_status status = tfm__trial_init(&filling.trial, err);
    if (status != TFM_STATUS_OK)
        return status;
    struct tfm_registry *made = tfm__alloc(sizeof *made);
    if (!made) {
        tfm__trial_deinit(&filling.trial);
        return tfm_error_set(err, TFM_STATUS_NOMEM, "registry: out of memory");
    }
    pthread_mutex_init(&made->lock, NULL);
    filling.registry = made;

    /* First, so that no plugin can take its name. */
    status = add_table(made, &tfm__backend_reference, "built in", 1, err);
    if (status == TFM_STATUS_OK)
        status = tfm__search_plugins(plugins, n, add_file, &filling);
    tfm__trial_deinit(&filling.trial);
    if (status != TFM_STATUS_OK) {
        tfm_registry_destroy(made);
        return tfm_error_set(err, status, "registry: %s", tfm_status_text(status));
    }
    *registry = made;
    return TFM_STATUS_OK;
}

void tfm_registry_destroy(struct tfm_registry *registry)
{
    if (!registry)
        return;
    for (size_t i = 0; i < registry->n; i++)
        tfm__entry_release(registry->entries[i]);
    pthread_mutex_destroy(&registry->lock);
    tfm__free(registry->entries);
    tfm__free(registry);
}

enum tfm_status tfm_registry_add(struct tfm_registry *registry, const struct tfm_backend *backend,
                                 struct tfm_error *err)
{
    tfm_error_clear(err);
    pthread_mutex_lock(&registry->lock);
    const enum tfm_status status = add_table(registry, backend, "memory", 0, err);
    pthread_mutex_unlock(&registry->lock);
    return status;
}

const struct tfm_backend *tfm_reference_backend(void)
{
    return &tfm__backend_reference;
}

size_t tfm_registry_count(const struct tfm_registry *registry)
{
    pthread_mutex_t *lock = &((struct tfm_registry *)registry)->lock;
    pthread_mutex_lock(lock);
    const size_t n = registry->n;
    pthread_mutex_unlock(lock);
    return n;
}

struct tfm__entry *tfm__registry_entry(struct tfm_registry *registry, size_t index)
{
    pthread_mutex_lock(&registry->lock);
    struct tfm__entry *entry = index < registry->n ? registry->entries[index] : NULL;
    pthread_mutex_unlock(&registry->lock);
    return entry;
}

const char *tfm_registry_file(struct tfm_registry *registry, size_t index)
{
    const struct tfm__entry *entry = tfm__registry_entry(registry, index);
    return entry ? entry->file : NULL;
}

const struct tfm_backend_row *tfm_registry_row(struct tfm_registry *registry, size_t index)
{
    struct tfm__entry *entry = tfm__registry_entry(registry, index);
    return entry ? tfm__entry_row(entry) : NULL;
}
