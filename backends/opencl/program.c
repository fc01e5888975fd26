/* SPDX-License-Identifier: MIT
 * The kernels of a device: embedded sources, or those in the folder TFM_KERNEL_PATH, built into one
 * program when the device is opened. */
#include <ctype.h>
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

enum { LOG_SHOWN = 4096, FILE_MAX = 1 << 20, OPTIONS = 256 };

struct sources {
    const char **strings;
    size_t n;
    char **owned; /* [n_owned] to free */
    size_t n_owned;
};

static void sources_free(const struct tfm_host *host, struct sources *s)
{
    for (size_t i = 0; i < s->n_owned; i++)
        host->free(s->owned[i]);
    host->free(s->owned);
    host->free(s->strings);
}

/* Counts the files, and their lines. */
static size_t count_files(size_t *lines)
{
    size_t n = 0;
    for (*lines = 0; tfm__kernel_sources[n].name; n++)
        *lines += tfm__kernel_sources[n].n_lines;
    return n;
}

static void take_embedded(struct sources *s)
{
    for (size_t i = 0; tfm__kernel_sources[i].name; i++) {
        for (size_t k = 0; k < tfm__kernel_sources[i].n_lines; k++)
            s->strings[s->n++] = tfm__kernel_sources[i].lines[k];
    }
}

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

static enum tfm_status gather(const struct tfm_host *host, struct sources *s, struct tfm_error *err)
{
    const char *folder = secure_getenv("TFM_KERNEL_PATH");
    size_t lines;
    const size_t files = count_files(&lines);

    memset(s, 0, sizeof *s);
    s->strings = host->alloc((lines + files) * sizeof *s->strings);
    s->owned = host->alloc(files * sizeof *s->owned);
    if (!s->strings || !s->owned)
        return host->error(err, TFM_STATUS_NOMEM, "opencl: out of memory for the kernel sources");
    if (!folder || !folder[0]) {
        take_embedded(s);
        return TFM_STATUS_OK;
    }
    for (size_t i = 0; i < files; i++) {
        char *text = NULL;
        const enum tfm_status status =
            read_file(host, folder, tfm__kernel_sources[i].name, &text, err);
        if (status != TFM_STATUS_OK)
            return status;
        s->owned[s->n_owned++] = text;
        s->strings[s->n++] = text;
    }
    return TFM_STATUS_OK;
}

/* The line of the log that says most: the first with "error", else the first that is not empty. */
static void first_error(const char *log, char *line, size_t size)
{
    const char *best = strstr(log, "error");
    size_t n = 0;

    if (!best)
        best = log + strspn(log, " \t\r\n");
    while (best > log && best[-1] != '\n')
        best--;
    while (n + 1 < size && best[n] && best[n] != '\n') {
        line[n] = isprint((unsigned char)best[n]) ? best[n] : ' ';
        n++;
    }
    line[n] = 0;
}

static enum tfm_status build_failed(const struct tfm__cl_device *d, cl_program program,
                                    const char *options, cl_int code, struct tfm_error *err)
{
    const struct tfm_host *host = d->host;
    size_t bytes = 0;
    char line[400] = "the driver gave no log";
    char *log = NULL;

    if (clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) ==
            CL_SUCCESS &&
        bytes > 1 && (log = host->alloc(bytes + 1)) != NULL) {
        log[0] = 0;
        (void)clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, bytes, log, NULL);
        log[bytes] = 0;
        if (log[strspn(log, " \t\r\n")])
            first_error(log, line, sizeof line);
        if (bytes > LOG_SHOWN)
            log[LOG_SHOWN] = 0;
        host->log(TFM_LOG_INFO, "opencl", log);
    }
    host->free(log);
    return host->error(
        err, TFM_STATUS_BUILD,
        "opencl: the kernels do not build on %s (driver %s) with \"%s\": %s (%d): %s; "
        "TFM_VERBOSE=1 shows the whole log",
        d->name, d->driver, options, tfm__cl_code_name(code), (int)code, line);
}

enum tfm_status tfm__cl_build(struct tfm__cl_device *d, struct tfm_error *err)
{
    struct sources s;
    char options[OPTIONS];
    cl_int code = CL_SUCCESS;
    enum tfm_status status = gather(d->host, &s, err);

    if (status != TFM_STATUS_OK)
        goto done;
    snprintf(options, sizeof options,
             "-cl-std=CL1.2 -cl-mad-enable -DTFM_ATTENTION_QUERIES=%d -DTFM_ATTENTION_KEYS=%d "
             "-DTFM_ATTENTION_SPLIT=%d",
             TFM__CL_ATTENTION_QUERIES, TFM__CL_ATTENTION_KEYS, TFM__CL_ATTENTION_SPLIT);
    const cl_program program =
        clCreateProgramWithSource(d->context, (cl_uint)s.n, s.strings, NULL, &code);
    if (code != CL_SUCCESS) {
        status = tfm__cl_fail(d->host, err, "clCreateProgramWithSource", code);
        goto done;
    }
    code = clBuildProgram(program, 1, &d->id, options, NULL, NULL);
    if (code != CL_SUCCESS) {
        status = build_failed(d, program, options, code, err);
        (void)clReleaseProgram(program);
        goto done;
    }
    d->program = program;
done:
    sources_free(d->host, &s);
    return status;
}
