/* SPDX-License-Identifier: MIT
 * The file of `tfm tune` for a device: "key = value" lines below $XDG_DATA_HOME/tfm/tune. Whatever does not fit
 * exactly makes the whole file ignored: half a choice is none. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/tune.h"

enum { PATH_BYTES = 1024, HEAD_BYTES = 512, LINES_BYTES = 512, FILE_BYTES = 16384, MOST = 1024 };

#define VARIABLE "TFM_OPENCL_TUNE"
#define VERSION  "1"

/* Sets of CLBlast's Xgemm parameters, in the order of tfm__cl_gemm_names: local memory and groups are for
 * GPUs, on CPUs they only cost. Which of them compute right values is for the device to show. */
static const struct {
    int for_cpu;
    const char *name;
    size_t values[TFM__CL_GEMM_PARAMETERS];
} sets[] = {
    /* GEMMK KREG KWG KWI MDIMA MDIMC MWG NDIMB NDIMC NWG SA SB STRM STRN VWM VWN */
    {1, "CLBlast, 16 x 16, vectors of 8", {0, 1, 16, 2, 1, 1, 16, 1, 1, 16, 0, 0, 0, 0, 8, 8}},
    {1, "CLBlast, 32 x 16, vectors of 8", {0, 1, 16, 2, 1, 1, 32, 1, 1, 16, 0, 0, 0, 0, 8, 8}},
    {1, "CLBlast, 16 x 8, vectors of 8", {0, 1, 16, 2, 1, 1, 16, 1, 1, 8, 0, 0, 0, 0, 8, 8}},
    {0, "CLBlast, 32 x 32", {0, 1, 16, 2, 8, 8, 32, 8, 8, 32, 0, 0, 0, 0, 1, 1}},
    {0, "CLBlast, 32 x 64, local memory", {0, 1, 16, 2, 8, 8, 32, 8, 8, 64, 1, 1, 0, 0, 1, 1}},
    {0, "CLBlast, 64 x 64, vectors of 2", {0, 1, 32, 2, 8, 8, 64, 8, 8, 64, 1, 1, 0, 0, 2, 2}},
    {0, "CLBlast, 64 x 64, vectors of 4", {0, 1, 32, 2, 16, 16, 64, 16, 16, 64, 1, 1, 0, 0, 4, 4}},
    {0,
     "CLBlast, 128 x 128, vectors of 4",
     {0, 1, 16, 2, 16, 16, 128, 16, 16, 128, 1, 1, 0, 1, 4, 4}},
};
enum { SETS = sizeof sets / sizeof *sets, CANDIDATES = SETS + 2 };

struct tfm__cl_tune_table {
    struct tfm_tune table;
    struct tfm_tune_candidate candidates[CANDIDATES];
    char path[PATH_BYTES], head[HEAD_BYTES], lines[SETS][LINES_BYTES];
};

/* ---- where it lies and what there is ---- */

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

static void find_path(const struct tfm__cl_device *d, char path[PATH_BYTES])
{
    const char *data = secure_getenv("XDG_DATA_HOME"), *home = secure_getenv("HOME");
    char file[320] = "opencl-";
    int n = -1;

    name_part(file, 160, d->name);
    name_part(file, 164, "-");
    name_part(file, 300, d->driver);
    path[0] = 0;
    if (data && data[0] == '/')
        n = snprintf(path, PATH_BYTES, "%s/tfm/tune/%s.conf", data, file);
    else if (home && home[0] == '/')
        n = snprintf(path, PATH_BYTES, "%s/.local/share/tfm/tune/%s.conf", home, file);
    if (n < 0 || n >= PATH_BYTES)
        path[0] = 0;
}

static void fill_table(const struct tfm__cl_device *d, struct tfm__cl_tune_table *t)
{
    const char *gemm = secure_getenv("TFM_OPENCL_GEMM");

    find_path(d, t->path);
    snprintf(t->head, sizeof t->head, "version = " VERSION "\ndevice = %s\ndriver = %s\n", d->name,
             d->driver);
    t->candidates[0] = (struct tfm_tune_candidate){"as shipped", ""};
    t->candidates[1] = (struct tfm_tune_candidate){"our own kernel", "gemm = own\n"};
    uint32_t count = 2;
    for (size_t i = 0; i < SETS; i++) {
        if (sets[i].for_cpu != (d->kind == TFM_DEVICE_CPU))
            continue;
        int n = snprintf(t->lines[i], LINES_BYTES, "gemm = clblast\n");
        for (size_t k = 0; k < TFM__CL_GEMM_PARAMETERS; k++)
            n += snprintf(t->lines[i] + n, LINES_BYTES - (size_t)n, "xgemm.%s = %zu\n",
                          tfm__cl_gemm_names[k], sets[i].values[k]);
        t->candidates[count++] = (struct tfm_tune_candidate){sets[i].name, t->lines[i]};
    }
    t->table = (struct tfm_tune){
        .struct_size = sizeof t->table,
        .variable = VARIABLE,
        .forced = gemm && gemm[0] && strcmp(gemm, "auto") != 0 ? "TFM_OPENCL_GEMM" : NULL,
        .path = t->path,
        .head = t->head,
        .candidates = t->candidates,
        .n = count,
    };
}

const struct tfm_tune *tfm__cl_tune(const struct tfm__cl_device *device)
{
    return &device->tune->table;
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
    if (strcmp(key, "gemm") == 0) {
        const int own = strcmp(value, "own") == 0;
        if (!own && strcmp(value, "clblast") != 0)
            return refuse(r, "gemm is own or clblast, not", value);
        r->tuned.gemm = own ? TFM__CL_GEMM_OWN : TFM__CL_GEMM_CLBLAST;
        r->tuned.has_gemm = 1;
        return 1;
    }
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
    if (!r->version || !r->is_device || !r->is_driver)
        return refuse(r, "it does not say for what it is:", "version, device, driver");
    if (r->parameters && r->parameters != (1u << TFM__CL_GEMM_PARAMETERS) - 1)
        return refuse(r, "parameters of CLBlast are missing:", "xgemm");
    r->tuned.has_xgemm = r->parameters != 0;
    return 1;
}

static void ignore(const struct tfm__cl_device *d, const char *path, const char *why)
{
    char text[PATH_BYTES + 256];

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
    else if (!read_lines(&r, text))
        ignore(d, path, r.why);
    else
        d->tuned = r.tuned;
}

enum tfm_status tfm__cl_tune_open(struct tfm__cl_device *d, struct tfm_error *err)
{
    const char *named = secure_getenv(VARIABLE);

    d->tune = d->host->alloc(sizeof *d->tune);
    if (!d->tune)
        return d->host->error(err, TFM_STATUS_NOMEM, "opencl: out of memory for the tune table");
    memset(d->tune, 0, sizeof *d->tune);
    fill_table(d, d->tune);
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
