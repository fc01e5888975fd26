/* SPDX-License-Identifier: MIT
 * The table of TFM_PROFILE: launches of a device by phase of the run and kernel, the longest first, beside what
 * the device can do at most. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/opencl/profile.h"

struct row {
    uint32_t label, decode;
    uint64_t calls, ns;
    double bytes, flop;
};

struct table {
    const struct tfm_host *host;
    struct row *rows; /* [room] */
    size_t n, room;
    int full; /* out of memory */
    uint64_t ns;
};

static struct row *row_of(struct table *t, const struct tfm__cl_span *span)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->rows[i].label == span->label && t->rows[i].decode == span->decode)
            return &t->rows[i];
    if (t->n == t->room) {
        const size_t room = t->room ? 2 * t->room : 32;
        struct row *more = t->host->alloc(room * sizeof *more);
        if (!more) {
            t->full = 1;
            return NULL;
        }
        if (t->n)
            memcpy(more, t->rows, t->n * sizeof *more);
        t->host->free(t->rows);
        t->rows = more;
        t->room = room;
    }
    t->rows[t->n] = (struct row){.label = span->label, .decode = span->decode};
    return &t->rows[t->n++];
}

static void add(void *context, const struct tfm__cl_span *span)
{
    struct table *t = context;
    struct row *row = row_of(t, span);

    if (!row)
        return;
    row->calls++;
    row->ns += span->end - span->begin;
    row->bytes += (double)span->work.bytes;
    row->flop += (double)span->work.flop;
    t->ns += span->end - span->begin;
}

static int longest_first(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    return (a->ns < b->ns) - (a->ns > b->ns);
}

/* The share of the limit that is nearer, and which it is: m = memory, c = computing. */
static void put_share(char *text, size_t size, const struct row *row, double read, double fma)
{
    const double seconds = 1e-9 * (double)row->ns;
    const double memory = read > 0 ? row->bytes / seconds / read : 0;
    const double computing = fma > 0 ? row->flop / seconds / fma : 0;

    if (row->ns == 0 || (read <= 0 && fma <= 0))
        snprintf(text, size, "%9s", "?");
    else
        snprintf(text, size, "%6.1f%% %c", 100 * (memory > computing ? memory : computing),
                 memory > computing ? 'm' : 'c');
}

static enum tfm_status finish(void *device, void (*line)(void *context, const char *text),
                              void *context, struct tfm_error *err)
{
    struct tfm__cl_device *d = device;
    struct table t = {.host = d->host};
    double read, fma;
    char text[256], share[32];

    if (!d->trace)
        return TFM_STATUS_OK;
    d->told = 1;
    const enum tfm_status status = tfm__cl_trace_write(d->host, err);
    tfm__cl_trace_each(d->trace, add, &t);
    if (t.full)
        line(context, "out of memory: the table is not complete");
    if (t.n == 0) {
        line(context, "no launches on this device");
        return status;
    }
    qsort(t.rows, t.n, sizeof *t.rows, longest_first);
    tfm__cl_limits(d, &read, &fma);
    snprintf(text, sizeof text,
             "%.100s: limits %.1f GB/s read, %.1f GFLOP/s f32 (measured now; m: the memory's share "
             "is larger, c: computing's)",
             d->name, 1e-9 * read, 1e-9 * fma);
    line(context, text);
    snprintf(text, sizeof text, "%-8s %-32s %8s %10s %6s %8s %9s %9s", "phase", "kernel", "calls",
             "ms", "time", "GB/s", "GFLOP/s", "of limit");
    line(context, text);
    for (size_t i = 0; i < t.n; i++) {
        const struct row *row = &t.rows[i];
        const double seconds = 1e-9 * (double)(row->ns ? row->ns : 1);
        put_share(share, sizeof share, row, read, fma);
        snprintf(text, sizeof text, "%-8s %-32.60s %8llu %10.3f %5.1f%% %8.2f %9.2f %9s",
                 row->decode ? "decode" : "prefill", tfm__cl_trace_name(row->label),
                 (unsigned long long)row->calls, 1e-6 * (double)row->ns,
                 100.0 * (double)row->ns / (double)(t.ns ? t.ns : 1), 1e-9 * row->bytes / seconds,
                 1e-9 * row->flop / seconds, share);
        line(context, text);
    }
    d->host->free(t.rows);
    return status;
}

const struct tfm_profile tfm__cl_profile_table = {.struct_size = sizeof tfm__cl_profile_table,
                                                  .finish = finish};
