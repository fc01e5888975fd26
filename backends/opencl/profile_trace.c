/* SPDX-License-Identifier: MIT
 * The timeline of TFM_PROFILE: spans of the whole process, written in the Trace Event Format that
 * chrome://tracing and Perfetto read (complete events, "ph": "X"). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/opencl/profile.h"

enum { SPANS_MOST = 1 << 20, DEVICES_MOST = 64 };

/* Lives as long as the process: a later device adds to the same file. */
static struct {
    pthread_mutex_t lock;
    struct tfm__cl_span *spans; /* [room] */
    size_t n, room, lost;
    char **texts; /* [n_texts]; number i is texts[i - 1] */
    size_t n_texts, room_texts;
    char devices[DEVICES_MOST][128];
    uint32_t n_devices, n_execs;
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *path(void)
{
    const char *name = secure_getenv("TFM_PROFILE");
    return name && *name ? name : NULL;
}

int tfm__cl_trace_wanted(void)
{
    return path() != NULL;
}

uint32_t tfm__cl_trace_device(const struct tfm__cl_device *device)
{
    pthread_mutex_lock(&trace.lock);
    uint32_t number = trace.n_devices < DEVICES_MOST ? ++trace.n_devices : DEVICES_MOST;
    snprintf(trace.devices[number - 1], sizeof trace.devices[0], "%s", device->name);
    pthread_mutex_unlock(&trace.lock);
    return number;
}

uint32_t tfm__cl_trace_exec(void)
{
    pthread_mutex_lock(&trace.lock);
    const uint32_t number = ++trace.n_execs;
    pthread_mutex_unlock(&trace.lock);
    return number;
}

/* Room for one more of `bytes` each; 0 when out of memory. */
static int grow(void **memory, size_t n, size_t *room, size_t bytes)
{
    if (n < *room)
        return 1;
    const size_t more = *room ? 2 * *room : 256;
    void *made = realloc(*memory, more * bytes);
    if (!made)
        return 0;
    *memory = made;
    *room = more;
    return 1;
}

uint32_t tfm__cl_trace_text(const char *text)
{
    uint32_t number = 0;

    pthread_mutex_lock(&trace.lock);
    for (size_t i = 0; i < trace.n_texts && number == 0; i++)
        if (strcmp(trace.texts[i], text) == 0)
            number = (uint32_t)i + 1;
    if (number == 0 &&
        grow((void **)&trace.texts, trace.n_texts, &trace.room_texts, sizeof *trace.texts)) {
        trace.texts[trace.n_texts] = strdup(text);
        if (trace.texts[trace.n_texts])
            number = (uint32_t)++trace.n_texts;
    }
    pthread_mutex_unlock(&trace.lock);
    return number;
}

static const char *name_of(uint32_t text)
{
    return text > 0 && text <= trace.n_texts ? trace.texts[text - 1] : "?";
}

const char *tfm__cl_trace_name(uint32_t text)
{
    pthread_mutex_lock(&trace.lock);
    const char *name = name_of(text);
    pthread_mutex_unlock(&trace.lock);
    return name;
}

void tfm__cl_trace_add(const struct tfm__cl_span *span)
{
    pthread_mutex_lock(&trace.lock);
    if (trace.n < SPANS_MOST &&
        grow((void **)&trace.spans, trace.n, &trace.room, sizeof *trace.spans))
        trace.spans[trace.n++] = *span;
    else
        trace.lost++;
    pthread_mutex_unlock(&trace.lock);
}

void tfm__cl_trace_each(uint32_t device,
                        void (*each)(void *context, const struct tfm__cl_span *span), void *context)
{
    pthread_mutex_lock(&trace.lock);
    for (size_t i = 0; i < trace.n; i++)
        if (trace.spans[i].device == device)
            each(context, &trace.spans[i]);
    pthread_mutex_unlock(&trace.lock);
}

/* ---- the file ---- */

/* Names come from devices and model files. */
static void put_string(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            fprintf(file, "\\u%04x", c);
        else
            fputc(c, file);
    }
    fputc('"', file);
}

static void put_span(FILE *file, const struct tfm__cl_span *s, uint64_t zero)
{
    const uint64_t begin = s->begin - zero, length = s->end - s->begin;

    fputs(",\n{\"ph\":\"X\",\"name\":", file);
    put_string(file, name_of(s->label));
    fprintf(file,
            ",\"cat\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"ts\":%" PRIu64 ".%03u,"
            "\"dur\":%" PRIu64 ".%03u,\"args\":{\"layer\":",
            s->decode ? "decode" : "prefill", s->device, s->exec, begin / 1000,
            (unsigned)(begin % 1000), length / 1000, (unsigned)(length % 1000));
    put_string(file, name_of(s->layer));
    fprintf(file,
            ",\"rows\":%" PRIu32 ",\"parts\":%" PRIu32 ",\"bytes\":%" PRIu64 ",\"flop\":%" PRIu64
            "}}",
            s->rows, s->parts, s->work.bytes, s->work.flop);
}

static void put_all(FILE *file)
{
    uint64_t zero[DEVICES_MOST + 1];

    /* the clocks of devices have nothing to do with each other: each begins at 0 */
    for (uint32_t d = 0; d <= DEVICES_MOST; d++)
        zero[d] = UINT64_MAX;
    for (size_t i = 0; i < trace.n; i++)
        if (trace.spans[i].begin < zero[trace.spans[i].device])
            zero[trace.spans[i].device] = trace.spans[i].begin;
    fprintf(
        file,
        "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"lost\":%zu},\"traceEvents\":[\n"
        "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"TFM\"}}",
        trace.lost);
    for (uint32_t d = 0; d < trace.n_devices; d++) {
        fprintf(file,
                ",\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%" PRIu32
                ",\"tid\":0,\"args\":{\"name\":",
                d + 1);
        put_string(file, trace.devices[d]);
        fputs("}}", file);
    }
    for (size_t i = 0; i < trace.n; i++)
        put_span(file, &trace.spans[i], zero[trace.spans[i].device]);
    fputs("\n]}\n", file);
}

/* A pipe or a device is written to as it is; a file is replaced by a complete one. */
static int is_special(const char *name)
{
    struct stat info;
    return stat(name, &info) == 0 && !S_ISREG(info.st_mode);
}

static enum tfm_status write_to(const struct tfm_host *host, const char *to, const char *wanted,
                                int fd, struct tfm_error *err)
{
    FILE *file = fd < 0 ? fopen(to, "w") : fdopen(fd, "w");

    if (!file) {
        const int cause = errno;
        if (fd >= 0)
            close(fd);
        return host->error(err, TFM_STATUS_IO, "opencl: TFM_PROFILE: cannot write %s: %s", wanted,
                           strerror(cause));
    }
    errno = 0;
    put_all(file);
    int failed = fflush(file) != 0 || ferror(file);
    int cause = errno;
    if (fclose(file) != 0 && !failed) {
        failed = 1;
        cause = errno;
    }
    return failed ? host->error(err, TFM_STATUS_IO, "opencl: TFM_PROFILE: cannot write %s: %s",
                                wanted, strerror(cause ? cause : EIO))
                  : TFM_STATUS_OK;
}

static enum tfm_status write_whole(const struct tfm_host *host, const char *wanted,
                                   struct tfm_error *err)
{
    char temporary[4096];

    if (is_special(wanted))
        return write_to(host, wanted, wanted, -1, err);
    if (snprintf(temporary, sizeof temporary, "%s.tfm-XXXXXX", wanted) >= (int)sizeof temporary)
        return host->error(err, TFM_STATUS_IO, "opencl: TFM_PROFILE: the name is too long");
    const int fd = mkstemp(temporary);
    if (fd < 0)
        return host->error(err, TFM_STATUS_IO, "opencl: TFM_PROFILE: cannot write %s: %s", wanted,
                           strerror(errno));
    (void)fchmod(fd, 0644);
    enum tfm_status status = write_to(host, temporary, wanted, fd, err);
    if (status == TFM_STATUS_OK && rename(temporary, wanted) != 0)
        status = host->error(err, TFM_STATUS_IO, "opencl: TFM_PROFILE: cannot write %s: %s", wanted,
                             strerror(errno));
    if (status != TFM_STATUS_OK)
        (void)unlink(temporary);
    return status;
}

enum tfm_status tfm__cl_trace_write(const struct tfm_host *host, struct tfm_error *err)
{
    const char *wanted = path();

    if (!wanted)
        return TFM_STATUS_OK;
    pthread_mutex_lock(&trace.lock);
    const enum tfm_status status = write_whole(host, wanted, err);
    pthread_mutex_unlock(&trace.lock);
    return status;
}
