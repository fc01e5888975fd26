/* SPDX-License-Identifier: MIT
 * metrics.jsonl of a training run: one JSON object a line and step, appended while it trains. */
#ifndef TFM__TOOLS_METRICS_H
#define TFM__TOOLS_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include <tfm/status.h>

/* A number that is not finite is left out of the line: NAN = not measured at this step. */
struct tfm__metrics_line {
    uint64_t step;     /* steps done, this one included: 1, 2, ... */
    uint64_t tokens;   /* trained on up to here */
    double loss;       /* nats a token */
    double validation; /* the same of held-out text */
    double rate, norm; /* learning rate; norm of the gradient before it was clipped */
    double tok_s, ms;  /* tokens a second; milliseconds of the step */
    double fallback;   /* share in [0, 1] of the nodes that ran on the reference instead */
    const char *backend, *device;
};

struct tfm__metrics; /* one thread at a time */

/* Opens the file to append to and makes it what it was after step `keep`: lines of later steps are cut (0: all), and so is
 * the part of a line that a killed process has left at the end. Creates it if it is missing. IO; FORMAT: a line is
 * none of ours (the text says which): nothing is changed then; NOMEM. */
enum tfm_status tfm__metrics_open(const char *path, uint64_t keep, struct tfm__metrics **metrics,
                                  struct tfm_error *err);
/* Appends a line with one write. IO: the file ends where it did before; NOMEM. */
enum tfm_status tfm__metrics_add(struct tfm__metrics *metrics, const struct tfm__metrics_line *line,
                                 struct tfm_error *err);
void tfm__metrics_close(struct tfm__metrics *metrics); /* NULL is fine */

/* What a curve is drawn from: columns of all lines, and of those with a validation loss. */
struct tfm__metrics_columns {
    size_t n, n_validation;
    double *step, *tokens, *loss; /* [n]; a loss that is missing is NAN */
    double *validation_step, *validation_tokens, *validation; /* [n_validation] */
};

/* Reads a file; a part of a line at the end is left out. columns is untouched on failure. IO, FORMAT and NOMEM as
 * above. */
enum tfm_status tfm__metrics_load(const char *path, struct tfm__metrics_columns *columns,
                                  struct tfm_error *err);
void tfm__metrics_columns_deinit(struct tfm__metrics_columns *columns);

#endif
