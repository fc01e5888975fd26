/* SPDX-License-Identifier: MIT
 * The order in which `auto` tries backends and devices, and what it passes over. */
#include "lib/core/auto.h"

#include "lib/core/device.h"
#include "lib/core/log.h"

enum { WHOLE_DEVICE = 50 /* score of a CPU device: it runs whole models */ };

/* ---- order -------------------------------------------------------------------------------------- */

/* 1 if `a` comes before `b`, which was found earlier: the higher score; the reference is last of equals. */
static int comes_before(struct tfm__entry *a, struct tfm__entry *b)
{
    return a->probe.score > b->probe.score ||
           (a->probe.score == b->probe.score && b->builtin && !a->builtin);
}

size_t tfm_auto_order(struct tfm_registry *registry, size_t *rows, size_t max)
{
    struct tfm__entry *entry;
    size_t n = 0;

    for (size_t i = 0; (entry = tfm__registry_entry(registry, i)) != NULL; i++) {
        size_t place = n;
        if (tfm__entry_row(entry)->status != TFM_STATUS_OK)
            continue;
        while (place > 0 && comes_before(entry, tfm__registry_entry(registry, rows[place - 1])))
            place--;
        if (place == max)
            continue;
        n += n < max;
        for (size_t k = n - 1; k > place; k--)
            rows[k] = rows[k - 1];
        rows[place] = i;
    }
    return n;
}

/* ---- what was refused --------------------------------------------------------------------------- */

/* 1 the first time. */
static int warn_once(struct tfm__entry *entry)
{
    pthread_mutex_lock(&entry->lock);
    const int first = !entry->warned;
    entry->warned = 1;
    pthread_mutex_unlock(&entry->lock);
    return first;
}

void tfm__auto_warn_refused(struct tfm_registry *registry, int is_auto)
{
    struct tfm__entry *entry;
    for (size_t i = 0; (entry = tfm__registry_entry(registry, i)) != NULL; i++) {
        if (!entry->accepted && !entry->shadowed_by && (entry->asked || is_auto) &&
            warn_once(entry))
            tfm__log(TFM_LOG_WARN, "registry", "skipped %s: %s", entry->file, entry->reason);
    }
}

/* With nothing left that runs whole models, the user learns why it is slow. */
static void warn_unusable(struct tfm_registry *registry, const char *taken)
{
    struct tfm__entry *entry;
    for (size_t i = 0; (entry = tfm__registry_entry(registry, i)) != NULL; i++) {
        if (entry->accepted && tfm__entry_row(entry)->status != TFM_STATUS_OK && warn_once(entry))
            tfm__log(TFM_LOG_WARN, entry->name, "cannot be used here: %s; auto takes %s",
                     entry->row.reason, taken);
    }
}

/* ---- choice ------------------------------------------------------------------------------------- */

void tfm__entry_reject(struct tfm__entry *entry, uint32_t index, const struct tfm_error *why)
{
    pthread_mutex_lock(&entry->lock);
    if (entry->rejected == 0)
        entry->why_rejected = *why;
    entry->rejected |= 1u << index;
    pthread_mutex_unlock(&entry->lock);
}

/* 1 if somebody found out that it does not work, with what was said then. */
static int is_rejected(struct tfm__entry *entry, uint32_t index, struct tfm_error *why)
{
    pthread_mutex_lock(&entry->lock);
    const int rejected = (entry->rejected >> index & 1) != 0;
    if (rejected)
        *why = entry->why_rejected;
    pthread_mutex_unlock(&entry->lock);
    return rejected;
}

/* The first device of the backend that opens: 1, 0 = none does, -1 = the user has set something to what
 * cannot be, which is his to mend. `first` keeps the first failure of all, or that one. */
static int open_one(struct tfm__entry *entry, uint32_t *index, struct tfm_device **device,
                    struct tfm_error *first)
{
    for (uint32_t i = 0; i < entry->probe.n_devices; i++) {
        struct tfm_error why = {0};
        const int told = is_rejected(entry, i, &why);
        if (!told && tfm__device_open(entry, i, device, &why) == TFM_STATUS_OK) {
            *index = i;
            return 1;
        }
        if (!told && why.status == TFM_STATUS_INVALID_ARGUMENT) {
            *first = why;
            return -1;
        }
        if (!told)
            tfm__log(TFM_LOG_WARN, entry->name, "%s; auto tries the next", why.text);
        if (first->status == TFM_STATUS_OK)
            *first = why;
    }
    return 0;
}

enum tfm_status tfm__auto_open(struct tfm_registry *registry, const char *source, int strict,
                               struct tfm__entry **entry, uint32_t *index,
                               struct tfm_device **device, struct tfm_error *err)
{
    size_t order[TFM__AUTO_MAX];
    const size_t n = tfm_auto_order(registry, order, TFM__AUTO_MAX);
    struct tfm_error first = {0};

    for (size_t i = 0; i < n; i++) {
        struct tfm__entry *candidate = tfm__registry_entry(registry, order[i]);
        if (candidate->builtin && first.status != TFM_STATUS_OK && strict)
            return tfm_error_set(err, first.status,
                                 "%s: auto: %s (TFM_STRICT keeps reference from taking over)",
                                 source, first.text);
        const int opened = open_one(candidate, index, device, &first);
        if (opened < 0)
            return tfm_error_set(err, first.status, "%s: auto: %s", source, first.text);
        if (!opened)
            continue;
        if (candidate->probe.score < WHOLE_DEVICE)
            warn_unusable(registry, candidate->name);
        *entry = candidate;
        return TFM_STATUS_OK;
    }
    return tfm_error_set(err, n ? first.status : TFM_STATUS_NOT_FOUND,
                         "%s: auto finds no usable backend: %s", source,
                         n ? first.text : "the registry has none");
}
