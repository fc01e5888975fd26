/* SPDX-License-Identifier: MIT
 * Finding backends and devices by what the user typed; each refusal lists what could have been
 * typed. */
#include "lib/core/match.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/core/nearest.h"

enum { NAMES_MAX = 64 };

struct text {
    char text[600];
    size_t used;
};

TFM_PRINTF(2, 3) static void append(struct text *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(to->text + to->used, sizeof to->text - to->used, format, args);
    va_end(args);
    if (n > 0)
        to->used += (size_t)n;
    if (to->used >= sizeof to->text)
        to->used = sizeof to->text - 1;
}

/* ---- backends -----------------------------------------------------------------------------------
 */

/* 1 for "opencl" and ".../opencl.so" or ".../libopencl.so": a file that dlopen refuses has no name
 * but its own. */
static int is_named_after(const struct tfm__entry *entry, const char *name)
{
    const char *slash = strrchr(entry->file, '/');
    const char *stem = slash ? slash + 1 : entry->file;
    const size_t length = strlen(name);

    if (strncmp(stem, "lib", 3) == 0 && strncmp(name, "lib", 3) != 0)
        stem += 3;
    return strncmp(stem, name, length) == 0 && stem[length] == '.';
}

static enum tfm_status not_found(struct tfm_registry *registry, const char *source,
                                 const char *name, struct tfm_error *err)
{
    const char *names[NAMES_MAX];
    struct text there = {0}, hint = {0};
    struct tfm__entry *entry;
    size_t n = 0;

    for (size_t i = 0; n < NAMES_MAX - 1 && (entry = tfm__registry_entry(registry, i)); i++) {
        if (!entry->accepted)
            continue;
        names[n++] = entry->name;
        append(&there, "%s, ", entry->name);
    }
    names[n++] = "auto";
    const char *near = tfm__nearest(name, names, n);
    if (near)
        append(&hint, "; did you mean \"%s\"?", near);
    return tfm_error_set(err, TFM_STATUS_NOT_FOUND,
                         "%s: no backend \"%s\"%s (there are: %sauto; TFM_PLUGIN_PATH or --plugin "
                         "adds others)",
                         source, name, hint.text, there.text);
}

enum tfm_status tfm__match_backend(struct tfm_registry *registry, const char *source,
                                   const char *name, struct tfm__entry **entry,
                                   struct tfm_error *err)
{
    struct tfm__entry *item, *refused = NULL;

    for (size_t i = 0; (item = tfm__registry_entry(registry, i)) != NULL; i++) {
        if (item->accepted && strcmp(item->name, name) == 0) {
            *entry = item;
            return TFM_STATUS_OK;
        }
        if (!item->accepted && !refused &&
            (item->name[0] ? strcmp(item->name, name) == 0 : is_named_after(item, name)))
            refused = item;
    }
    if (refused)
        return tfm_error_set(err, TFM_STATUS_PLUGIN, "%s: backend \"%s\" was refused: %s: %s",
                             source, name, refused->file, refused->reason);
    return not_found(registry, source, name, err);
}

/* ---- devices ------------------------------------------------------------------------------------
 */

static int contains(const char *text, const char *part)
{
    const size_t length = strlen(part);
    for (; *text; text++) {
        if (strncasecmp(text, part, length) == 0)
            return 1;
    }
    return 0;
}

static void list_device(struct text *to, const struct tfm_probe *probe, uint32_t i)
{
    append(to, "%s%u = %s", to->used ? ", " : "", (unsigned)i, probe->devices[i].name);
    if (probe->devices[i].platform[0])
        append(to, " (%s)", probe->devices[i].platform);
}

/* 1 if the text is a number within the list. A larger one may still be a part of a name: "4090". */
static int is_index(const char *text, uint32_t n, uint32_t *index)
{
    char *end;
    if (strspn(text, "0123456789") != strlen(text))
        return 0;
    const unsigned long value = strtoul(text, &end, 10);
    if (value >= n)
        return 0;
    *index = (uint32_t)value;
    return 1;
}

/* Devices whose platform or name holds the text: counted, listed, the last one kept. */
static uint32_t search(const struct tfm_probe *probe, const char *text, int exactly,
                       uint32_t *index, struct text *list)
{
    uint32_t hits = 0;
    for (uint32_t i = 0; i < probe->n_devices; i++) {
        const char *name = probe->devices[i].name, *platform = probe->devices[i].platform;
        if (exactly ? strcasecmp(name, text) != 0 && strcasecmp(platform, text) != 0
                    : !contains(name, text) && !contains(platform, text))
            continue;
        hits++;
        *index = i;
        list_device(list, probe, i);
    }
    return hits;
}

enum tfm_status tfm__match_device(struct tfm__entry *entry, const char *source, const char *text,
                                  uint32_t *index, struct tfm_error *err)
{
    const struct tfm_backend_row *row = tfm__entry_row(entry);
    const struct tfm_probe *probe = row->probe;
    struct text exact = {0}, partly = {0}, all = {0};
    uint32_t found = 0;

    if (row->status != TFM_STATUS_OK)
        return tfm_error_set(err, row->status, "%s: backend \"%s\" cannot be used here: %s", source,
                             entry->name, row->reason);
    if (!text || is_index(text, probe->n_devices, &found) ||
        search(probe, text, 1, &found, &exact) == 1) {
        *index = found;
        return TFM_STATUS_OK;
    }
    const uint32_t hits = search(probe, text, 0, &found, &partly);
    if (hits == 1) {
        *index = found;
        return TFM_STATUS_OK;
    }
    if (hits > 1)
        return tfm_error_set(err, TFM_STATUS_INVALID_ARGUMENT,
                             "%s: \"%s\" fits %u devices of backend \"%s\": %s; give the number",
                             source, text, (unsigned)hits, entry->name, partly.text);
    for (uint32_t i = 0; i < probe->n_devices; i++)
        list_device(&all, probe, i);
    return tfm_error_set(err, TFM_STATUS_NOT_FOUND,
                         "%s: backend \"%s\" has no device \"%s\" (there are: %s%s%s)", source,
                         entry->name, text, all.text, *row->reason ? "; " : "", row->reason);
}
