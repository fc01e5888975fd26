/* SPDX-License-Identifier: MIT
 * TFM_PROFILE=FILE.json: every launch with its event times, as a timeline and as a table. Off, an exec's
 * profile is NULL, and a launch costs one comparison. Events of all devices and execs of the process come
 * together in one list. */
#ifndef TFM_OPENCL_PROFILE_H
#define TFM_OPENCL_PROFILE_H

#include "backends/opencl/internal.h"

/* The rows of a run, as far as work depends on them. */
struct tfm__cl_run {
    uint32_t n, n_out, n_seq;
    uint64_t cells;  /* of all its sequences, after it */
    uint64_t looked; /* cells that all its rows look at, causally */
    int decode;      /* 1 = one row a sequence */
};

/* What a launch moves and computes at least: each tensor once; a multiply-add is two operations. */
struct tfm__cl_work {
    uint64_t bytes, flop;
};

/* A launch that is over. */
struct tfm__cl_span {
    uint32_t device, exec; /* numbers in this process */
    uint32_t label, layer; /* numbers of texts */
    uint32_t rows, parts;
    uint32_t decode;
    uint64_t begin, end; /* ns of the device's clock */
    struct tfm__cl_work work;
};

/* ---- work (profile_work.c) ---- */

struct tfm__cl_run tfm__cl_run_of(const struct tfm_rows *rows);
struct tfm__cl_work tfm__cl_work_of(const struct tfm__cl_launch *launch,
                                    const struct tfm__cl_run *run);

/* ---- the list (profile_trace.c) ---- */

/* 1 if TFM_PROFILE names a file. */
int tfm__cl_trace_wanted(void);
/* A number for a device, or for an exec. */
uint32_t tfm__cl_trace_device(const struct tfm__cl_device *device);
uint32_t tfm__cl_trace_exec(void);
/* The number of a text; 0 when out of memory: the spans say "?". */
uint32_t tfm__cl_trace_text(const char *text);
/* Appends a span; what does not fit is counted. */
void tfm__cl_trace_add(const struct tfm__cl_span *span);
/* Writes the file, whole or not at all. IO: it cannot be written (named, with the reason); NOMEM. */
enum tfm_status tfm__cl_trace_write(const struct tfm_host *host, struct tfm_error *err);
/* Calls `each` for every span of a device. */
void tfm__cl_trace_each(uint32_t device,
                        void (*each)(void *context, const struct tfm__cl_span *span),
                        void *context);
const char *tfm__cl_trace_name(uint32_t text);

/* ---- the table (profile_table.c) ---- */

/* The extension TFM_PROFILE_EXTENSION. */
extern const struct tfm_profile tfm__cl_profile_table;

/* Measures what the device reads from memory, bytes a second, and multiplies and adds in f32, operations a
 * second; 0 = it could not be measured. (profile_limits.c) */
void tfm__cl_limits(struct tfm__cl_device *device, double *read, double *fma);

#endif
