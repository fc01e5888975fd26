/* SPDX-License-Identifier: MIT
 * tfm_devices_open: from "NAME[:DEVICE][,NAME...]" or "auto" to a list of open devices. A backend
 * that was named is never replaced by another; auto.c has what `auto` takes.
 */
#include <string.h>

#include "lib/core/alloc.h"
#include "lib/core/auto.h"
#include "lib/core/device.h"
#include "lib/core/env.h"
#include "lib/core/match.h"
#include "lib/core/registry.h"

enum { LIST_MAX = 32 };

/* The list in the making. */
struct choice {
    struct tfm_registry *registry;
    const char *source; /* where the spec came from, for messages */
    int strict;
    struct pick {
        struct tfm__entry *entry;
        uint32_t index;
    } picks[LIST_MAX];
    size_t n;
    struct tfm_device *open[LIST_MAX]; /* picks that are open already */
};

/* Naming a device twice changes nothing: its second place never gets a node. */
static enum tfm_status pick(struct choice *choice, struct tfm__entry *entry, uint32_t index,
                            struct tfm_error *err)
{
    for (size_t i = 0; i < choice->n; i++) {
        if (choice->picks[i].entry == entry && choice->picks[i].index == index)
            return TFM_STATUS_OK;
    }
    if (choice->n == LIST_MAX)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT, "%s: more than %d devices",
                             choice->source, LIST_MAX);
    choice->picks[choice->n].entry = entry;
    choice->picks[choice->n++].index = index;
    return TFM_STATUS_OK;
}

static enum tfm_status pick_auto(struct choice *choice, struct tfm_error *err)
{
    struct tfm__entry *entry;
    uint32_t index;
    const enum tfm_status status = tfm__auto_open(choice->registry, choice->source, choice->strict,
                                                  &entry, &index, &choice->open[0], err);
    return status == TFM_STATUS_OK ? pick(choice, entry, index, err) : status;
}

/* ---- a list of names ----------------------------------------------------------------------------
 */

static char *trim(char *text)
{
    text += strspn(text, " \t");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t", text[length - 1]))
        text[--length] = '\0';
    return text;
}

/* Takes one NAME[:DEVICE] apart (in place) and picks it. */
static enum tfm_status pick_item(struct choice *choice, char *item, struct tfm_error *err)
{
    struct tfm__entry *entry = NULL;
    uint32_t index = 0;
    char *device = strchr(item, ':');

    if (device) {
        *device++ = '\0';
        device = trim(device);
    }
    const char *name = trim(item);
    if (!*name || (device && !*device))
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "%s: empty %s in the list (NAME[:DEVICE][,NAME...] is wanted)",
                             choice->source, *name ? "device" : "name");
    if (strcmp(name, "auto") == 0)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "%s: auto stands alone, without devices or other names",
                             choice->source);
    enum tfm_status status =
        tfm__match_backend(choice->registry, choice->source, name, &entry, err);
    if (status == TFM_STATUS_OK)
        status = tfm__match_device(entry, choice->source, device, &index, err);
    return status == TFM_STATUS_OK ? pick(choice, entry, index, err) : status;
}

static enum tfm_status pick_names(struct choice *choice, const char *spec, struct tfm_error *err)
{
    enum tfm_status status = TFM_STATUS_OK;
    char *copy = tfm__strdup(spec), *rest = copy, *item;

    if (!copy)
        return tfm_error_set(err, TFM_STATUS_NOMEM, "%s: out of memory", choice->source);
    while (status == TFM_STATUS_OK && (item = strsep(&rest, ",")) != NULL)
        status = pick_item(choice, item, err);
    tfm__free(copy);
    return status;
}

/* ---- both ---------------------------------------------------------------------------------------
 */

/* `reference` ends every list, unless strict keeps it away or the user has given it a place. */
static enum tfm_status pick_reference(struct choice *choice, struct tfm_error *err)
{
    struct tfm__entry *entry;

    if (choice->strict)
        return TFM_STATUS_OK;
    for (size_t i = 0; i < choice->n; i++) {
        if (choice->picks[i].entry->builtin)
            return TFM_STATUS_OK;
    }
    for (size_t i = 0; (entry = tfm__registry_entry(choice->registry, i)) != NULL; i++) {
        if (entry->builtin && tfm__entry_row(entry)->status == TFM_STATUS_OK)
            return pick(choice, entry, 0, err);
    }
    return TFM_STATUS_OK;
}

static enum tfm_status open_picks(struct choice *choice, struct tfm_error *err)
{
    for (size_t i = 0; i < choice->n; i++) {
        if (choice->open[i])
            continue;
        const enum tfm_status status =
            tfm__device_open(choice->picks[i].entry, choice->picks[i].index, &choice->open[i], err);
        if (status != TFM_STATUS_OK) {
            tfm_error_prefix(err, "%s", choice->source);
            return status;
        }
    }
    return TFM_STATUS_OK;
}

enum tfm_status tfm_devices_open(struct tfm_registry *registry, const char *spec, int strict,
                                 struct tfm_device **devices, size_t max, size_t *n,
                                 struct tfm_error *err)
{
    struct choice choice = {.registry = registry, .source = "backend"};
    enum tfm_status status;

    tfm_error_clear(err);
    choice.strict = strict < 0 ? tfm__devices_strict_env() : strict;
    if (!spec) {
        choice.source = "TFM_BACKEND";
        spec = tfm__env("TFM_BACKEND");
        if (!spec || !*spec)
            spec = "auto";
    }
    const int is_auto = strcmp(spec, "auto") == 0;
    status = is_auto ? pick_auto(&choice, err) : pick_names(&choice, spec, err);
    if (status == TFM_STATUS_OK)
        status = pick_reference(&choice, err);
    if (status == TFM_STATUS_OK && choice.n > max)
        status = tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                               "%s: the list has %zu devices, the caller has room for %zu",
                               choice.source, choice.n, max);
    if (status == TFM_STATUS_OK)
        status = open_picks(&choice, err);
    if (status != TFM_STATUS_OK) {
        for (size_t i = 0; i < choice.n; i++)
            tfm_device_release(choice.open[i]);
        return status;
    }
    /* After an error this would be a second message about the same thing. */
    tfm__auto_warn_refused(registry, is_auto);
    memcpy(devices, choice.open, choice.n * sizeof *devices);
    *n = choice.n;
    return TFM_STATUS_OK;
}
