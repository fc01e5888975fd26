/* SPDX-License-Identifier: MIT
 * The text of the kernels: embedded, or from the folder TFM_KERNEL_PATH, read once when a device is
 * opened. A program is one or more files of kernels/ behind those that they include. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/internal.h"
#include "kernels/embedded.h"

/* step.h and the .cl files know dtypes by number: the list in dtypes.def is the one that counts. */
#define TFM_DTYPE(id, NAME, name, block, bytes, class, minor) \
    _Static_assert(TFM_STEP_##NAME == (id), "kernels/step.h: id of " name);
#include <tfm/dtypes.def>
#undef TFM_DTYPE

enum { FILE_MAX = 1 << 20 };

struct tfm__cl_sources {
    const struct tfm_host *host;
    size_t n, lines; /* files; lines of all that are embedded */
    char **read;     /* [n] texts from the folder; NULL = the embedded ones count */
};

/* ---- reading ---- */

/* A file with a #line in front, so that the log names it. */
static enum tfm_status read_file(const struct tfm_host *host, const char *folder, const char *name,
                                 char **text, struct tfm_error *err)
{
    char path[1024];
    enum tfm_status status = TFM_STATUS_OK;
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);

    if (length < 0 || (size_t)length >= sizeof path || strpbrk(path, "\"\\\n"))
        return host->error(err, TFM_STATUS_INVALID_ARGUMENT,
                           "opencl: TFM_KERNEL_PATH is too long or holds quotes: %.200s", folder);
    FILE *file = fopen(path, "rb");
    if (!file)
        return host->error(
            err, TFM_STATUS_IO,
            "opencl: cannot read %s: %s; TFM_KERNEL_PATH must be a folder with every "
            "file of kernels/, or unset",
            path, strerror(errno));
    char *made = host->alloc(FILE_MAX + sizeof path + 16);
    if (!made) {
        status = host->error(err, TFM_STATUS_NOMEM, "opencl: out of memory for %s", path);
    } else {
        const int head = sprintf(made, "#line 1 \"%s\"\n", path);
        const size_t got = fread(made + head, 1, FILE_MAX, file);
        made[(size_t)head + got] = 0;
        if (ferror(file) || got == FILE_MAX)
            status = host->error(err, TFM_STATUS_IO, "opencl: cannot read %s: %s", path,
                                 ferror(file) ? "input/output error" : "more than 1 MiB");
    }
    fclose(file);
    if (status == TFM_STATUS_OK)
        *text = made;
    else
        host->free(made);
    return status;
}

void tfm__cl_sources_close(struct tfm__cl_sources *sources)
{
    if (!sources)
        return;
    for (size_t i = 0; sources->read && i < sources->n; i++)
        sources->host->free(sources->read[i]);
    sources->host->free(sources->read);
    sources->host->free(sources);
}

static enum tfm_status no_memory(const struct tfm_host *host, struct tfm_error *err)
{
    return host->error(err, TFM_STATUS_NOMEM, "opencl: out of memory for the kernel sources");
}

enum tfm_status tfm__cl_sources_open(const struct tfm_host *host, struct tfm__cl_sources **sources,
                                     struct tfm_error *err)
{
    const char *folder = secure_getenv("TFM_KERNEL_PATH");
    enum tfm_status status = TFM_STATUS_OK;
    struct tfm__cl_sources *s = host->alloc(sizeof *s);

    if (!s)
        return no_memory(host, err);
    *s = (struct tfm__cl_sources){.host = host};
    for (; tfm__kernel_sources[s->n].name; s->n++)
        s->lines += tfm__kernel_sources[s->n].n_lines;
    if (folder && folder[0]) {
        s->read = host->alloc(s->n * sizeof *s->read);
        status = s->read ? TFM_STATUS_OK : no_memory(host, err);
        for (size_t i = 0; s->read && i < s->n; i++)
            s->read[i] = NULL;
        for (size_t i = 0; i < s->n && status == TFM_STATUS_OK; i++)
            status = read_file(host, folder, tfm__kernel_sources[i].name, &s->read[i], err);
    }
    if (status != TFM_STATUS_OK) {
        tfm__cl_sources_close(s);
        return status;
    }
    *sources = s;
    return TFM_STATUS_OK;
}

/* ---- gathering ---- */

/* What a program is put together from. */
struct gathering {
    const struct tfm__cl_sources *sources;
    unsigned char *taken; /* [files] */
    const char **strings; /* [n] */
    size_t n;
};

static void take_file(struct gathering *g, const char *name, size_t length);

/* The files that a text includes in quotes come before it. */
static void take_includes(struct gathering *g, const char *text)
{
    while (text) {
        const char *c = text + strspn(text, " \t");
        if (strncmp(c, "#include", 8) == 0) {
            c += 8;
            c += strspn(c, " \t");
            if (*c == '"')
                take_file(g, c + 1, strcspn(c + 1, "\"\n"));
        }
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
}

static void take_file(struct gathering *g, const char *name, size_t length)
{
    const struct tfm__cl_sources *s = g->sources;
    size_t i = 0;

    while (i < s->n && (strncmp(tfm__kernel_sources[i].name, name, length) != 0 ||
                        tfm__kernel_sources[i].name[length] != 0))
        i++;
    if (i == s->n || g->taken[i]) /* a name that nobody knows is left to the compiler */
        return;
    g->taken[i] = 1;
    if (s->read) {
        take_includes(g, s->read[i]);
        g->strings[g->n++] = s->read[i];
        return;
    }
    const struct tfm__kernel_source *file = &tfm__kernel_sources[i];
    for (size_t k = 0; k < file->n_lines; k++)
        take_includes(g, file->lines[k]);
    for (size_t k = 0; k < file->n_lines; k++)
        g->strings[g->n++] = file->lines[k];
}

static void take_common(struct gathering *g)
{
    static const char *const files[TFM_OP_LIMIT] = {
#define TFM_OP(id, NAME, stem, in_min, in_max, outputs, rows, in_place, diff, nmse, minor) \
    [TFM_OP_##NAME] = #stem ".cl",
#include <tfm/ops.def>
#undef TFM_OP
    };

    for (size_t i = 0; i < TFM_OP_LIMIT; i++) {
        const struct tfm__cl_op *op = tfm__cl_op((enum tfm_op)i);
        if (files[i] && op && !op->alone)
            take_file(g, files[i], strlen(files[i]));
    }
}

enum tfm_status tfm__cl_sources_gather(const struct tfm__cl_sources *sources, const char *file,
                                       int proof, const char ***strings, size_t *n,
                                       struct tfm_error *err)
{
    const struct tfm_host *host = sources->host;
    struct gathering g = {
        .sources = sources,
        .taken = host->alloc(sources->n),
        .strings = host->alloc((sources->lines + sources->n) * sizeof *g.strings),
    };

    if (!g.taken || !g.strings) {
        host->free(g.taken);
        host->free(g.strings);
        return no_memory(host, err);
    }
    memset(g.taken, 0, sources->n);
    if (file)
        take_file(&g, file, strlen(file));
    else
        take_common(&g);
    if (!file && proof)
        take_file(&g, "int8.cl", strlen("int8.cl"));
    host->free(g.taken);
    *strings = g.strings;
    *n = g.n;
    return TFM_STATUS_OK;
}
