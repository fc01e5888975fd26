/* SPDX-License-Identifier: MIT
 * The file of `tfm tune` for a device: "key = value" lines below $XDG_DATA_HOME/tfm/tune. Whatever does not fit
 * exactly makes the whole file ignored: half a choice is none. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/tune.h"

enum { FILE_BYTES = 16384, MOST = 1024 };

#define VERSION "1"

static const struct key {
    const char *name, *words[2];
    uint32_t least, most, step;
} keys[TFM__CL_TUNE_KEYS] = {
#define TFM_TUNE_KEY(ID, name, first, second, least, most, step) \
    [TFM__CL_TUNE_##ID] = {name, {first, second}, least, most, step},
#include "backends/opencl/tune_keys.def"
#undef TFM_TUNE_KEY
};

/* ---- where it lies ---- */

static void name_part(char *to, size_t size, const char *text)
{
    const size_t used = strlen(to);
    size_t at = used;

    for (; *text && at + 1 < size; text++) {
        const char c = *text;
        const int plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '.' || c == '-';
        if (plain || (at > used && to[at - 1] != '_'))
            to[at++] = plain ? c : '_';
    }
    to[at] = 0;
}

static void find_path(const struct tfm__cl_device *d, char path[TFM__CL_TUNE_PATH])
{
    const char *data = secure_getenv("XDG_DATA_HOME"), *home = secure_getenv("HOME");
    char file[320] = "opencl-";
    int n = -1;

    name_part(file, 160, d->name);
    name_part(file, 164, "-");
    name_part(file, 300, d->driver);
    path[0] = 0;
    if (data && data[0] == '/')
        n = snprintf(path, TFM__CL_TUNE_PATH, "%s/tfm/tune/%s.conf", data, file);
    else if (home && home[0] == '/')
        n = snprintf(path, TFM__CL_TUNE_PATH, "%s/.local/share/tfm/tune/%s.conf", home, file);
    if (n < 0 || n >= TFM__CL_TUNE_PATH)
        path[0] = 0;
}

uint32_t tfm__cl_tuned(const struct tfm__cl_device *d, enum tfm__cl_tune_key key, int *file)
{
    const int has = d->tuned.has >> key & 1;

    if (file)
        *file = has;
    return has ? d->tuned.values[key] : d->shipped.values[key];
}

/* ---- reading ---- */

/* What a file says. */
struct reading {
    const struct tfm__cl_device *device;
    struct tfm__cl_tuned tuned;
    int version, is_device, is_driver; /* seen, and right */
    uint32_t parameters;               /* bits of those seen */
    char why[160];
};

static int refuse(struct reading *r, const char *what, const char *value)
{
    snprintf(r->why, sizeof r->why, "%s '%.60s'", what, value);
    return 0;
}

static int read_parameter(struct reading *r, const char *name, const char *value)
{
    char *end;

    for (uint32_t k = 0; k < TFM__CL_GEMM_PARAMETERS; k++) {
        if (strcmp(name, tfm__cl_gemm_names[k]) != 0)
            continue;
        const unsigned long number = strtoul(value, &end, 10);
        if (value[0] < '0' || value[0] > '9' || *end || number > MOST)
            return refuse(r, "a parameter that is no number up to 1024:", value);
        if (r->parameters >> k & 1)
            return refuse(r, "twice the parameter", name);
        r->tuned.xgemm[k] = number;
        r->parameters |= 1u << k;
        return 1;
    }
    return refuse(r, "CLBlast's Xgemm has no parameter", name);
}

static int refuse_value(struct reading *r, const struct key *key, const char *value)
{
    if (key->words[0][0])
        snprintf(r->why, sizeof r->why, "%s is %s or %s, not '%.60s'", key->name, key->words[0],
                 key->words[1], value);
    else
        snprintf(r->why, sizeof r->why, "%s is a multiple of %u from %u to %u, not '%.60s'",
                 key->name, key->step, key->least, key->most, value);
    return 0;
}

static int read_value(struct reading *r, uint32_t k, const char *value)
{
    const struct key *key = &keys[k];
    unsigned long number = 0;
    char *end;

    if (r->tuned.has >> k & 1)
        return refuse(r, "twice the key", key->name);
    if (key->words[0][0]) {
        while (number < 2 && strcmp(value, key->words[number]) != 0)
            number++;
    } else {
        number = strtoul(value, &end, 10);
        if (value[0] < '0' || value[0] > '9' || *end || number < key->least ||
            number % key->step != 0)
            return refuse_value(r, key, value);
    }
    if (number > key->most)
        return refuse_value(r, key, value);
    r->tuned.values[k] = (uint32_t)number;
    r->tuned.has |= 1u << k;
    return 1;
}

static int read_pair(struct reading *r, const char *key, const char *value)
{
    if (strcmp(key, "version") == 0) {
        r->version = strcmp(value, VERSION) == 0;
        return r->version ? 1 : refuse(r, "it is of version", value);
    }
    if (strcmp(key, "device") == 0) {
        r->is_device = strcmp(value, r->device->name) == 0;
        return r->is_device ? 1 : refuse(r, "it is of the device", value);
    }
    if (strcmp(key, "driver") == 0) {
        r->is_driver = strcmp(value, r->device->driver) == 0;
        return r->is_driver ? 1 : refuse(r, "it is of the driver", value);
    }
    for (uint32_t k = 0; k < TFM__CL_TUNE_KEYS; k++)
        if (strcmp(key, keys[k].name) == 0)
            return read_value(r, k, value);
    if (strncmp(key, "xgemm.", 6) == 0)
        return read_parameter(r, key + 6, value);
    return refuse(r, "there is no key", key);
}

static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r", text[n - 1]))
        text[--n] = 0;
    return text;
}

static int read_line(struct reading *r, char *line)
{
    char *text = trim(line), *equal = strchr(text, '=');

    if (*text == 0 || *text == '#')
        return 1;
    if (!equal)
        return refuse(r, "no 'key = value':", text);
    *equal = 0;
    return read_pair(r, trim(text), trim(equal + 1));
}

static int read_lines(struct reading *r, char *text)
{
    for (char *line = text; line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end = 0;
        if (!read_line(r, line))
            return 0;
        line = end ? end + 1 : NULL;
    }
    return 1;
}

static int read_text(struct reading *r, char *text)
{
    if (!read_lines(r, text))
        return 0;
    if (!r->version || !r->is_device || !r->is_driver)
        return refuse(r, "it does not say for what it is:", "version, device, driver");
    if (r->parameters && r->parameters != (1u << TFM__CL_GEMM_PARAMETERS) - 1)
        return refuse(r, "parameters of CLBlast are missing:", "xgemm");
    r->tuned.has_xgemm = r->parameters != 0;
    return 1;
}

static void ignore(const struct tfm__cl_device *d, const char *path, const char *why)
{
    char text[TFM__CL_TUNE_PATH + 256];

    snprintf(text, sizeof text, "the tune file %s is ignored: %s; tfm tune makes a new one", path,
             why);
    d->host->log(TFM_LOG_WARN, "opencl", text);
}

static void read_file(struct tfm__cl_device *d, const char *path, int named)
{
    char text[FILE_BYTES + 1];
    struct reading r = {.device = d};
    FILE *file = fopen(path, "rb");

    if (!file) {
        if (named || errno != ENOENT)
            ignore(d, path, strerror(errno));
        return;
    }
    const size_t n = fread(text, 1, sizeof text, file);
    const int failed = ferror(file);
    fclose(file);
    text[n < FILE_BYTES ? n : FILE_BYTES] = 0;
    if (failed || n > FILE_BYTES || memchr(text, 0, n))
        ignore(d, path, failed ? "it cannot be read" : "it is no text of at most 16 KiB");
    else if (!read_text(&r, text))
        ignore(d, path, r.why);
    else
        d->tuned = r.tuned;
}

/* What is shipped is written in the same words. */
static void take_shipped(struct tfm__cl_device *d)
{
    struct reading r = {.device = d};
    char text[TFM__CL_TUNE_LINES], why[96];
    const char *name, *lines = tfm__cl_tune_shipped(d, &name);

    snprintf(text, sizeof text, "%s", lines);
    if (read_lines(&r, text))
        d->shipped = r.tuned;
    snprintf(why, sizeof why, "the device is %s",
             d->kind == TFM_DEVICE_CPU ? "a CPU" : "not a CPU");
    tfm__cl_choose(d, "defaults", name, why);
}

enum tfm_status tfm__cl_tune_open(struct tfm__cl_device *d, struct tfm_error *err)
{
    const char *named = secure_getenv(TFM__CL_TUNE_VARIABLE);

    d->tune = d->host->alloc(sizeof *d->tune);
    if (!d->tune)
        return d->host->error(err, TFM_STATUS_NOMEM, "opencl: out of memory for the tune table");
    memset(d->tune, 0, sizeof *d->tune);
    find_path(d, d->tune->path);
    snprintf(d->tune->head, sizeof d->tune->head,
             "version = " VERSION "\ndevice = %s\ndriver = %s\n", d->name, d->driver);
    tfm__cl_tune_fill(d, d->tune);
    take_shipped(d);
    if (named && *named) {
        if (strcmp(named, "off") != 0)
            read_file(d, named, 1);
    } else if (d->tune->path[0]) {
        read_file(d, d->tune->path, 0);
    }
    return TFM_STATUS_OK;
}

void tfm__cl_tune_close(struct tfm__cl_device *d)
{
    d->host->free(d->tune);
    d->tune = NULL;
}
