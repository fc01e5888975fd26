/* SPDX-License-Identifier: MIT
 * What `tfm train` tells while it trains: a line a step, sample texts, metrics.jsonl, the curve. */
#ifndef TFM__TOOLS_TRAIN_REPORT_H
#define TFM__TOOLS_TRAIN_REPORT_H

#include <tfm/tokenizer.h>
#include <tfm/trainer.h>

#include "lib/tools/metrics.h"
#include "lib/tools/options.h"
#include "lib/tools/progress.h"

struct tfm__train_report {
    const struct tfm__options *options;
    struct tfm_trainer *trainer;
    const struct tfm_tokenizer *tokenizer;
    const char *backend, *device;
    uint64_t begun; /* steps that had been done before */
    uint64_t steps; /* that will have been done at the end */
    double fallback;
    struct tfm__metrics *metrics;
    struct tfm__progress progress;
};

/* Each returns an exit code after it has said what is wrong. */

/* Opens OUT/metrics.jsonl; lines of steps that the trainer has not done (a process that was killed) are cut. */
int tfm__train_report_open(struct tfm__train_report *report);
/* A step, in standard output and metrics; validation NAN = not measured. */
int tfm__train_report_step(struct tfm__train_report *report, const struct tfm_trainer_report *step,
                           double seconds, double validation);
void tfm__train_report_validation(struct tfm__train_report *report, double loss, uint64_t tokens);
/* A text of the model as it is now. The same step gives the same text. */
int tfm__train_report_sample(struct tfm__train_report *report);
/* Writes OUT/curve.svg from OUT/metrics.jsonl. */
int tfm__train_report_curve(const struct tfm__train_report *report);
void tfm__train_report_close(struct tfm__train_report *report);

#endif
