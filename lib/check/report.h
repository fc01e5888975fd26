/* SPDX-License-Identifier: MIT
 * What the child that runs a backend tells the parent: records of one line, fields divided by tabs,
 * written before and after each case, so that a crash has a name. A child that follows a crashed one
 * counts the cases that are done and runs the rest. */
#ifndef TFM__CHECK_REPORT_H
#define TFM__CHECK_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include <tfm/status.h>

struct tfm__report {
    FILE *to;
    uint64_t done;   /* cases that an earlier child has finished */
    uint64_t index;  /* of the next case */
    uint64_t failed; /* cases until now, of earlier children too */
};

/* First field of a record; the others: */
#define TFM__RECORD_CASE     "case" /* kind (device, node), name */
#define TFM__RECORD_PASS     "pass"
#define TFM__RECORD_FAIL     "fail"     /* why */
#define TFM__RECORD_SKIP     "skip"     /* why */
#define TFM__RECORD_SUBJECT  "subject"  /* name, version, file, device */
#define TFM__RECORD_REFUSED  "refused"  /* op, nodes, of how many, reason */
#define TFM__RECORD_NOTE     "note"     /* text */
#define TFM__RECORD_LOG      "log"      /* text, a message of the backend */
#define TFM__RECORD_MEASURE  "measure"  /* name, of what is measured next */
#define TFM__RECORD_MEASURED "measured" /* op, node, rows, ns, GB/s, GFLOP/s */
#define TFM__RECORD_ERROR    "error" /* text: nothing can be checked; the case that runs is none */
#define TFM__RECORD_END      "end"

/* 1 = run the case and call tfm__report_end; 0 = an earlier child has done it. `kind` is "device" or
 * "node". */
int tfm__report_begin(struct tfm__report *report, const char *kind, const char *format, ...)
    TFM_PRINTF(3, 4);
/* It passed if err holds no error. */
void tfm__report_end(struct tfm__report *report, const struct tfm_error *err);

/* A case that is not run: stands in place of begin and end. */
void tfm__report_skip(struct tfm__report *report, const char *why, const char *kind,
                      const char *format, ...) TFM_PRINTF(4, 5);

/* Any other record; each field is a string. Nothing when cases are still to be passed over, because
 * the child before has said the same. */
void tfm__report_put(struct tfm__report *report, const char *record, const char *const *fields,
                     size_t n);
void tfm__report_note(struct tfm__report *report, const char *format, ...) TFM_PRINTF(2, 3);

#endif
