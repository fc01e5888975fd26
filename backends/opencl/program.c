/* SPDX-License-Identifier: MIT
 * The programs of a device: the common one, built when it is opened, and those for a file of kernels/ and
 * a set of options that a plan asks for, built when the first one does. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "backends/opencl/internal.h"
#include "backends/opencl/pocl_cache.h"

enum { LOG_SHOWN = 4096, OPTIONS = 512 };

struct tfm__cl_built {
    const char *file; /* of the module's constants, or NULL */
    char *options;    /* its own, or NULL */
    cl_program program;
    struct tfm__cl_built *next;
};

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

/* The build log, which the caller frees; NULL = there is none. */
static char *read_log(const struct tfm__cl_device *d, cl_program program)
{
    size_t bytes = 0;
    char *log = NULL;

    if (clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes) ==
            CL_SUCCESS &&
        bytes > 1 && (log = d->host->alloc(bytes + 1)) != NULL) {
        log[0] = 0;
        (void)clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, bytes, log, NULL);
        log[bytes] = 0;
    }
    return log;
}

/* log: may be NULL; it is cut to what is shown. */
static enum tfm_status build_failed(const struct tfm__cl_device *d, char *log, const char *options,
                                    cl_int code, struct tfm_error *err)
{
    const struct tfm_host *host = d->host;
    char line[400] = "the driver gave no log";

    if (log) {
        if (log[strspn(log, " \t\r\n")])
            first_error(log, line, sizeof line);
        if (strlen(log) > LOG_SHOWN)
            log[LOG_SHOWN] = 0;
        host->log(TFM_LOG_INFO, "opencl", log);
    }
    return host->error(err, TFM_STATUS_BUILD,
                       "opencl: clBuildProgram: the kernels do not build on %s (driver %s) with "
                       "\"%s\": %s (%d): %s; "
                       "TFM_VERBOSE=1 shows the whole log",
                       d->name, d->driver, options, tfm__cl_code_name(code), (int)code, line);
}

/* What common.cl wants to know about the shape. */
static const char *shape_option(const struct tfm__cl_device *d)
{
    return d->settings.shape == TFM__CL_GROUP ? " -DTFM_GROUPED=1"
           : d->settings.narrow               ? " -DTFM_NARROW=1"
                                              : "";
}

/* A compiler that fails for a reason in the source says which. PoCL 3.1 also fails now and then, and names none, while
 * other processes fill the same cache: the next time it finds what they have put there. */
enum { TRIES = 3 };

static enum tfm_status build(struct tfm__cl_device *d, const struct tfm__cl_kernel *kernel,
                             cl_program *built, struct tfm_error *err)
{
    struct tfm__cl_pocl_build kept;
    const char **strings = NULL;
    size_t n = 0;
    char options[OPTIONS];
    cl_int code = CL_SUCCESS;
    const char *own = kernel->file ? kernel->options : d->proof;
    enum tfm_status status =
        tfm__cl_sources_gather(d->sources, kernel->file, d->proof != NULL, &strings, &n, err);

    if (status != TFM_STATUS_OK)
        return status;
    snprintf(options, sizeof options,
             "-cl-std=CL1.2 -cl-mad-enable -DTFM_ATTENTION_QUERIES=%d -DTFM_ATTENTION_KEYS=%d "
             "-DTFM_ATTENTION_SPLIT=%u -DTFM_PANELS_DEPTH=%d%s%s%s",
             TFM__CL_ATTENTION_QUERIES, TFM__CL_ATTENTION_KEYS, d->settings.split,
             TFM__CL_PANELS_DEPTH, shape_option(d), own ? " " : "", own ? own : "");
    tfm__cl_pocl_cache_before(d, options, strings, n, &kept);
    for (int tries = 1;; tries++) {
        const cl_program program =
            clCreateProgramWithSource(d->context, (cl_uint)n, strings, NULL, &code);
        if (code != CL_SUCCESS) {
            status = tfm__cl_fail(d->host, err, "clCreateProgramWithSource", code);
            goto done;
        }
        code = clBuildProgram(program, 1, &d->id, options, NULL, NULL);
        if (code == CL_SUCCESS) {
            tfm__cl_pocl_cache_after(d, &kept);
            *built = program;
            goto done;
        }
        char *log = read_log(d, program);
        const int again =
            code == CL_BUILD_PROGRAM_FAILURE && tries < TRIES && !(log && strstr(log, "error:"));
        /* what fails with the proof is built without it, and tells then what is wrong */
        if (!again)
            status = build_failed(d, !kernel->file && d->proof ? NULL : log, options, code, err);
        d->host->free(log);
        (void)clReleaseProgram(program);
        if (!again)
            goto done;
        d->host->log(TFM_LOG_INFO, "opencl",
                     "a program was not built, and the compiler names no error: once more");
    }
done:
    d->host->free(strings);
    return status;
}

static int same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Under the lock. */
static enum tfm_status find_or_build(struct tfm__cl_device *d, const struct tfm__cl_kernel *kernel,
                                     cl_program *program, struct tfm_error *err)
{
    for (const struct tfm__cl_built *b = d->built; b; b = b->next) {
        if (same(b->file, kernel->file) && same(b->options, kernel->options)) {
            *program = b->program;
            return TFM_STATUS_OK;
        }
    }
    const size_t length = kernel->options ? strlen(kernel->options) + 1 : 0;
    struct tfm__cl_built *b = d->host->alloc(sizeof *b + length);
    if (!b)
        return d->host->error(err, TFM_STATUS_NOMEM, "opencl: out of memory for a program");
    *b = (struct tfm__cl_built){kernel->file, length ? (char *)(b + 1) : NULL, NULL, d->built};
    if (length)
        memcpy(b->options, kernel->options, length);
    const enum tfm_status status = build(d, kernel, &b->program, err);
    if (status != TFM_STATUS_OK) {
        d->host->free(b);
        return status;
    }
    d->built = b;
    *program = b->program;
    return TFM_STATUS_OK;
}

enum tfm_status tfm__cl_program_of(struct tfm__cl_device *d, const struct tfm__cl_kernel *kernel,
                                   cl_program *program, struct tfm_error *err)
{
    pthread_mutex_lock(&d->build_lock);
    const enum tfm_status status = find_or_build(d, kernel, program, err);
    pthread_mutex_unlock(&d->build_lock);
    return status;
}

enum tfm_status tfm__cl_programs_open(struct tfm__cl_device *d, struct tfm_error *err)
{
    const struct tfm__cl_kernel common = {NULL, NULL, NULL};
    struct tfm_error own = {0};
    cl_program program;
    const enum tfm_status status = tfm__cl_sources_open(d->host, &d->sources, err);

    if (status != TFM_STATUS_OK)
        return status;
    d->proof = tfm__cl_int8_guess(d);
    if (d->proof && tfm__cl_program_of(d, &common, &program, &own) == TFM_STATUS_OK)
        return TFM_STATUS_OK;
    /* without it, in case that the compiler does not know the way */
    d->proof = NULL;
    return tfm__cl_program_of(d, &common, &program, err);
}

void tfm__cl_programs_close(struct tfm__cl_device *d)
{
    for (struct tfm__cl_built *b = d->built, *next; b; b = next) {
        next = b->next;
        (void)clReleaseProgram(b->program);
        d->host->free(b);
    }
    tfm__cl_sources_close(d->sources);
}
