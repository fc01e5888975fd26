/* SPDX-License-Identifier: MIT
 * The parts of a check; each runs its cases through the report. */
#ifndef TFM__CHECK_CHECKS_H
#define TFM__CHECK_CHECKS_H

#include "lib/check/check.h"
#include "lib/check/op.h"
#include "lib/check/report.h"

struct tfm__subject {
    const struct tfm_backend *table; /* members past its struct_size are NULL */
    struct tfm_probe probe;
    uint32_t index; /* of the device */
};

/* probe, open, close and transfers. 0 = the device is not worth more: nodes are left out. */
int tfm__check_device(struct tfm__report *report, const struct tfm__subject *subject);

/* The nodes of one op in all ways, as many as the options say, and its answers to questions. Returns
 * how many nodes it takes. */
uint32_t tfm__check_nodes(struct tfm__report *report, const struct tfm__drive_backend *backend,
                          const struct tfm__drive_backend *reference, enum tfm_op op,
                          const struct tfm__check_options *options);

/* One node that it takes: what it leaves behind, allocations that fail, two threads. */
void tfm__check_stress(struct tfm__report *report, const struct tfm__drive_backend *backend,
                       const struct tfm__drive_backend *reference, enum tfm_op op,
                       const struct tfm__check_options *options);

/* Times of large nodes. */
void tfm__check_performance(struct tfm__report *report, const struct tfm__drive_backend *backend,
                            enum tfm_op op);

/* ---- shared by them (nodes.c) ---- */

/* The answer of supports() for the node of a sample; reason [size] may be NULL. */
int tfm__check_asks(const struct tfm__drive_backend *backend, const struct tfm__sample *sample,
                    char *reason, size_t size);
/* Plans of one sample on backend and reference. */
struct tfm__pair {
    struct tfm__drive_plan *plan, *reference;
};
enum tfm_status tfm__pair_open(struct tfm__pair *pair, const struct tfm__drive_backend *backend,
                               const struct tfm__drive_backend *reference,
                               const struct tfm__sample *sample, uint32_t capacity, unsigned flags,
                               struct tfm_error *err);
void tfm__pair_close(struct tfm__pair *pair);
/* The same rows on both, compared. */
enum tfm_status tfm__pair_run(const struct tfm__pair *pair, struct tfm__sample *sample,
                              const struct tfm_rows *rows, struct tfm_error *err);
/* The first way that applies to the sample, prepared; is_short: the one of fewest rows. */
void tfm__check_prepare(enum tfm_op op, struct tfm__sample *sample, int is_short,
                        struct tfm__check_rows *run);
/* The last sample of the op that the backend takes is built; 0 = there is none. */
int tfm__check_find(const struct tfm__drive_backend *backend, enum tfm_op op,
                    struct tfm__sample *sample);

#endif
