/* SPDX-License-Identifier: MIT
 * The check of a backend: every node that it takes against the reference, in a child process of its own,
 * so that a crash is a failed case with a name. */
#ifndef TFM__CHECK_CHECK_H
#define TFM__CHECK_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include <tfm/device.h>

struct tfm__check_options {
    const char *subject;        /* NAME[:DEVICE], or a file: what ends in .so or holds a slash */
    const char *op;             /* stem of the only op to check; NULL = all */
    const char *const *plugins; /* [n_plugins] as for tfm_registry_create */
    size_t n_plugins;
    int seconds;    /* that one case may take; 0 = 120 */
    uint32_t nodes; /* of each op at most, spread over those that the backend takes; 0 = all */
    uint32_t rows;  /* that a case has at most, of more it is left out; 0 = any number */
    int one_thread; /* 1 = the cases with two threads are skipped */
    int no_times;   /* 1 = without the table of times */
};

/* Results as they come; strings are valid during the call. Any of them may be NULL. */
struct tfm__check_sink {
    void *context;
    void (*subject)(void *context, const char *name, const char *version, const char *file,
                    const char *device);
    /* why is "" when it passed */
    void (*result)(void *context, const char *kind, const char *name, int passed, const char *why);
    void (*refused)(void *context, const char *op, uint32_t nodes, uint32_t of, const char *reason);
    void (*note)(void *context, const char *text);
    void (*measured)(void *context, const char *op, const char *node, uint32_t rows,
                     double nanoseconds, double gigabytes, double gigaflops);
    void (*skipped)(void *context, const char *kind, const char *name, const char *why);
};

struct tfm__check_summary {
    uint64_t passed, failed; /* all cases that were run */
    uint64_t skipped;        /* because the options say so */
    uint64_t nodes;          /* of them, cases that ran a node */
    uint64_t device;         /* ... and those of the device and its answers */
};

/* Runs all cases. OK also when some failed: the summary counts. NOT_FOUND: no such backend, device or
 * op; BACKEND: it cannot be used here, its probe says why; IO: no child could be started. */
enum tfm_status tfm__check_run(const struct tfm__check_options *options,
                               const struct tfm__check_sink *sink,
                               struct tfm__check_summary *summary, struct tfm_error *err);

/* ---- child.c: what runs in the child ---- */

struct tfm__report;
void tfm__check_child(const struct tfm__check_options *options, struct tfm__report *report);

#endif
